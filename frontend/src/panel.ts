/** One run: its marginals and answer for the sentence, with controls. */

import { answerLine } from "./answer";
import type { Channel, Clamps, Drawing, Run } from "./api";
import { ChannelChoice } from "./channelChoice";
import { ClampEditor } from "./clampEditor";
import { counted, element, percent } from "./dom";
import { Grid } from "./grid";
import { MeaningsOf } from "./meanings";
import { PickMode } from "./pickMode";
import { Picture } from "./picture";
import { InferenceClient, type Inferred } from "./inference";
import { shareBar } from "./share";
import { type PanelState, sentWords, type State, withLabel } from "./state";
import { headsOf, strongArcs } from "./strength";
import { Timeline } from "./timeline";
import { WordTable } from "./wordTable";
import { wordButtons } from "./wordButtons";
import { escaped, split } from "./words";

/** What changed before a request, which says where an error is shown. */
export type Cause = "sentence" | "clamps";

export interface PanelHooks {
  /** With a cause, the run infers again. */
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
  parsing: "parses sentences",
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
  private readonly client: InferenceClient;
  private inferred: Inferred | null = null;
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
    this.client = new InferenceClient(
      (inferred) => this.accept(inferred),
      (message) => this.fail(message),
    );
    this.node = this.build();
  }

  /** Show the state; with a cause, request inference after a delay in milliseconds. */
  update(state: State, panel: PanelState, cause: Cause | null, milliseconds = 0): void {
    const before = this.panel as PanelState | undefined;
    const redraw = before?.channel !== panel.channel || this.state.threshold !== state.threshold;
    this.state = state;
    this.panel = panel;
    this.channel.show(panel.channel);
    if (cause || this.isCurrent()) this.clamps.draw(split(state.text), panel.clamps);
    if (cause) {
      this.cause = cause;
      this.pick.reset();
      this.client.request(state, panel, milliseconds);
      this.node.setAttribute("aria-busy", "true");
    }
    if (!this.inferred) return;
    if (redraw) this.drawPicture();
    else this.showStep();
  }

  /** Before the panel is removed, or while there is no valid sentence. */
  stop(): void {
    this.client.cancel();
    this.timeline.pause();
    this.node.removeAttribute("aria-busy");
  }

  private onWord(word: number): void {
    if (this.isCurrent()) this.pick.pick(word);
  }

  /** Whether the picture shows the current sentence. */
  private isCurrent(): boolean {
    return this.inferred?.text === this.state.text;
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

  private accept(inferred: Inferred): void {
    this.inferred = inferred;
    this.node.removeAttribute("aria-busy");
    this.clamps.error.textContent = "";
    this.hooks.sentenceError("");
    this.answer.replaceChildren(...answerLine(inferred.result, this.run, inferred.words));
    const { result } = inferred;
    this.unknown.replaceChildren(...unknownLine(inferred));
    this.timeline.draw(result.heads.length, result.free_energy, this.step());
    this.drawPicture();
  }

  private fail(message: string): void {
    this.node.removeAttribute("aria-busy");
    if (this.cause === "clamps") this.clamps.error.textContent = message;
    else this.hooks.sentenceError(message);
  }

  private drawPicture(): void {
    if (!this.inferred) return;
    const { channel, clamps } = this.panel;
    const all = channel === "all";
    this.grid.node.hidden = !all;
    this.picture.node.hidden = all;
    this.pick.node.hidden = all;
    const looks = wordButtons(this.inferred, clamps, this.pick.picked, this.pick.hides);
    const numbers = all ? Array.from({ length: this.run.channels }, (_, at) => at) : [channel];
    const arcs = numbers.map((number) => this.arcsOf(number));
    if (all) this.grid.draw(looks, arcs, this.step());
    else this.picture.draw(looks, arcs[0] ?? [], this.step());
    const least = percent(this.state.threshold);
    const some = arcs.flat(2).length;
    this.empty.textContent = some ? "" : `No head is as likely as ${least}: move “Arcs from” down.`;
    this.pick.say(this.inferred.words, this.panel);
    this.showStep();
  }

  /** The arcs above the threshold, of every step. */
  private arcsOf(channel: Channel) {
    const { result } = this.inferred as Inferred;
    return result.heads.map((_, step) =>
      strongArcs(headsOf(result, step, channel, this.run), this.state.threshold),
    );
  }

  private showStep(): void {
    if (!this.inferred) return;
    const { result, words } = this.inferred;
    const step = this.step();
    this.picture.show(step);
    this.grid.show(step);
    this.timeline.show(step);
    const heads = headsOf(result, step, this.panel.channel, this.run);
    this.table.draw(result, words, heads, step);
  }

  /** Counted from 0. */
  private step(): number {
    const last = this.lastStep();
    return Math.min(this.panel.step ?? last, last) - 1;
  }

  private lastStep(): number {
    return this.inferred?.result.heads.length ?? this.run.steps;
  }

  private clampTo(clamps: Clamps): void {
    this.hooks.change({ clamps }, "clamps");
  }

  /** A page shows all iterations, a picture one of them. */
  private drawingFor(format: Drawing["format"]): Drawing | null {
    if (!this.inferred) return null;
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

function unknownLine({ words, result }: Inferred): (Node | string)[] {
  const names = new Set(result.unknown.map((at) => escaped(words[at] ?? "")));
  if (!names.size) return [];
  const listed = [...names].flatMap((name, at) => [
    at ? ", " : "This run does not know ",
    element("bdi", {}, `“${name}”`),
  ]);
  return [...listed, "."];
}
