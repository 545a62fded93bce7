/** One run: how it reads the sentence, and what can be done about it. */

import { answerLine } from "./answer";
import type { Channel, Clamps, Drawing, Run } from "./api";
import { ChannelChoice } from "./channelChoice";
import { ClampEditor } from "./clampEditor";
import { counted, element, percent } from "./dom";
import { Grid } from "./grid";
import { MeaningsOf } from "./meanings";
import { PickMode } from "./pickMode";
import { Picture } from "./picture";
import { Reader, type Reading } from "./reader";
import { shareBar } from "./share";
import { type PanelState, sentWords, type State, withLabel } from "./state";
import { headsOf, strongArcs } from "./strength";
import { Timeline } from "./timeline";
import { WordTable } from "./wordTable";
import { wordButtons } from "./wordButtons";
import { shown, split } from "./words";

/** What a request was sent for, and so where its error belongs. */
export type Cause = "sentence" | "clamps";

export interface PanelHooks {
  /** A cause asks the run again. */
  change(next: Partial<PanelState>, cause?: Cause): void;
  toggleMask(word: number): void;
  sentenceError(message: string): void;
}

const MODELS = { pt: "probabilistic transformer", transformer: "transformer" };
const TASKS = {
  mlm: "guesses hidden words",
  tagging: "tags words",
  ner: "finds names",
  classification: "classifies sentences",
  cogs: "writes logical forms",
};

const ABOUT_LABELS = "Every word has a hidden label, too. Choose one to see what it means.";

export class Panel {
  readonly node: HTMLElement;
  private readonly answer = element("div", { class: "answer", "aria-live": "polite" });
  private readonly empty = element("p", { class: "dim small" });
  private readonly unknown = element("p", { class: "dim small unknown-words" });
  private readonly channel: ChannelChoice;
  private readonly picture = new Picture((word) => this.onWord(word));
  private readonly grid = new Grid((channel) => this.hooks.change({ channel }));
  private readonly pick: PickMode;
  private readonly timeline: Timeline;
  private readonly clamps: ClampEditor;
  private readonly table: WordTable;
  private readonly reader: Reader;
  private reading: Reading | null = null;
  private cause: Cause = "sentence";
  private state!: State;
  private panel!: PanelState;

  constructor(
    readonly run: Run,
    private readonly hooks: PanelHooks,
  ) {
    const meanings = new MeaningsOf(run);
    const holdLabel = (word: number, label: number) => {
      if (this.isCurrent()) this.clampTo(withLabel(this.panel.clamps, { word, label }));
    };
    this.channel = new ChannelChoice(run, meanings, (channel) => hooks.change({ channel }));
    this.timeline = new Timeline(run.step, (step) => {
      hooks.change({ step: step < this.lastStep() ? step : null });
    });
    this.clamps = new ClampEditor(run, (clamps) => this.clampTo(clamps));
    this.table = new WordTable(run, meanings, holdLabel);
    this.pick = new PickMode(run, {
      toggleMask: hooks.toggleMask,
      holdHead: (clamps) => this.clampTo(clamps),
      redraw: () => this.drawPicture(),
    });
    this.reader = new Reader(
      (reading) => this.accept(reading),
      (message) => this.fail(message),
    );
    this.node = this.build();
  }

  /** Show the state; with a cause, ask the run anew after so many milliseconds. */
  update(state: State, panel: PanelState, cause: Cause | null, milliseconds = 0): void {
    const before = this.panel as PanelState | undefined;
    const redraw = before?.channel !== panel.channel || this.state.threshold !== state.threshold;
    this.state = state;
    this.panel = panel;
    this.channel.show(panel.channel);
    if (cause || this.isCurrent()) this.clamps.draw(split(state.text), panel.clamps);
    if (cause) {
      this.cause = cause;
      this.pick.forget();
      this.reader.ask(state, panel, milliseconds);
      this.node.setAttribute("aria-busy", "true");
    }
    if (!this.reading) return;
    if (redraw) this.drawPicture();
    else this.showStep();
  }

  /** Before it is taken off the page, or while there is nothing to read. */
  stop(): void {
    this.reader.cancel();
    this.timeline.pause();
    this.node.removeAttribute("aria-busy");
  }

  private onWord(word: number): void {
    if (this.isCurrent()) this.pick.pick(word);
  }

  /** Whether the words of the picture are still those of the sentence. */
  private isCurrent(): boolean {
    return this.reading?.text === this.state.text;
  }

  private build(): HTMLElement {
    const { run } = this;
    const onkeydown = (event: KeyboardEvent) => {
      if (event.key === "Escape") this.pick.cancel();
    };
    const channels = counted(run.channels, run.model === "pt" ? "channel" : "attention head");
    const size = `${channels}, ${counted(run.steps, run.step)}`;
    const about = `${MODELS[run.model]}, ${TASKS[run.task]} · ${size}`;
    const details = element("details", { open: true }, element("summary", {}, "Word by word"));
    if (run.labels !== null) details.append(element("p", { class: "dim small" }, ABOUT_LABELS));
    details.append(this.table.node);
    return element(
      "section",
      { class: "panel", "aria-label": `Run ${run.name}`, onkeydown },
      element("header", {}, element("h2", {}, run.name), element("p", { class: "dim" }, about)),
      this.answer,
      element("div", { class: "controls" }, this.channel.node, this.pick.node),
      element("div", { class: "stage" }, this.picture.node, this.grid.node, this.empty),
      this.unknown,
      this.timeline.node,
      run.can_clamp ? this.clamps.node : null,
      details,
      shareBar((format) => this.drawingFor(format)),
    );
  }

  private accept(reading: Reading): void {
    this.reading = reading;
    this.node.removeAttribute("aria-busy");
    this.clamps.error.textContent = "";
    this.hooks.sentenceError("");
    this.answer.replaceChildren(...answerLine(reading.result, this.run, reading.words));
    const { result } = reading;
    this.unknown.replaceChildren(...unknownLine(reading));
    this.timeline.draw(result.heads.length, result.free_energy, this.step());
    this.drawPicture();
  }

  private fail(message: string): void {
    this.node.removeAttribute("aria-busy");
    if (this.cause === "clamps") this.clamps.error.textContent = message;
    else this.hooks.sentenceError(message);
  }

  private drawPicture(): void {
    if (!this.reading) return;
    const { channel, clamps } = this.panel;
    const all = channel === "all";
    this.grid.node.hidden = !all;
    this.picture.node.hidden = all;
    this.pick.node.hidden = all;
    const looks = wordButtons(this.reading, clamps, this.pick.picked, this.pick.hides);
    const numbers = all ? Array.from({ length: this.run.channels }, (_, at) => at) : [channel];
    const arcs = numbers.map((number) => this.arcsOf(number));
    if (all) this.grid.draw(looks, arcs, this.step());
    else this.picture.draw(looks, arcs[0] ?? [], this.step());
    const least = percent(this.state.threshold);
    const some = arcs.flat(2).length;
    this.empty.textContent = some ? "" : `No head is as likely as ${least}: move “Arcs from” down.`;
    this.pick.say(this.reading.words, this.panel);
    this.showStep();
  }

  /** The strong arcs of every step. */
  private arcsOf(channel: Channel) {
    const { result } = this.reading as Reading;
    return result.heads.map((_, step) =>
      strongArcs(headsOf(result, step, channel), this.state.threshold),
    );
  }

  private showStep(): void {
    if (!this.reading) return;
    const { result, words } = this.reading;
    const step = this.step();
    this.picture.show(step);
    this.grid.show(step);
    this.timeline.show(step);
    this.table.draw(result, words, headsOf(result, step, this.panel.channel), step);
  }

  /** Counted from 0. */
  private step(): number {
    const last = this.lastStep();
    return Math.min(this.panel.step ?? last, last) - 1;
  }

  private lastStep(): number {
    return this.reading?.result.heads.length ?? this.run.steps;
  }

  private clampTo(clamps: Clamps): void {
    this.hooks.change({ clamps }, "clamps");
  }

  /** A page can replay inference, a picture shows one step of it. */
  private drawingFor(format: Drawing["format"]): Drawing | null {
    if (!this.reading) return null;
    const { channel, clamps, run } = this.panel;
    const replay = format === "html" && channel !== "all";
    return {
      run,
      sentence: sentWords(this.state),
      kind: replay ? "iterations" : "arcs",
      channel,
      ...(replay ? {} : { iteration: this.step() + 1 }),
      threshold: this.state.threshold,
      format,
      clamps,
    };
  }
}

function unknownLine({ words, result }: Reading): (Node | string)[] {
  const names = new Set(result.unknown.map((at) => shown(words[at] ?? "")));
  if (!names.size) return [];
  const listed = [...names].flatMap((name, at) => [
    at ? ", " : "This run does not know ",
    element("bdi", {}, `“${name}”`),
  ]);
  return [...listed, "."];
}
