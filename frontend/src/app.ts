/** The page: the sentence, one or two runs, and their common state. */

import type { Run } from "./api";
import { counted, element, errorLine, percent, uniqueId } from "./dom";
import { fromFragment, toFragment } from "./link";
import { linkButton } from "./linkButton";
import { type Cause, Panel } from "./panel";
import { freshPanel, type PanelState, type State, withMaskToggled, withText } from "./state";
import { themeSwitch } from "./theme";
import { split } from "./words";

const TYPING = 250;
const MOST_WORDS = 1000;
const ADDRESS = 150;
const LONGEST_LINK = 60_000;
const NONE = "";

export class App {
  readonly node: HTMLElement;
  private readonly sentence: HTMLTextAreaElement;
  private readonly errors = [errorLine(), errorLine()];
  private readonly note = element("p", { class: "dim", role: "status" });
  private readonly runChoice = element("select");
  private readonly otherChoice = element("select");
  private readonly threshold: HTMLInputElement;
  private readonly thresholdValue = element("output");
  private readonly holder = element("div", { class: "panels" });
  private panels: Panel[] = [];
  private addressTimer = 0;
  private state!: State;

  constructor(private readonly runs: Run[]) {
    const onsentence = () => this.set(withText(this.state, this.sentence.value), "sentence", TYPING);
    const plain = { spellcheck: "false", autocomplete: "off", autocapitalize: "off" };
    const attributes = { rows: 2, dir: "auto", ...plain, oninput: onsentence };
    this.sentence = element("textarea", { ...attributes, "aria-describedby": "sentence-errors" });
    const range = { type: "range", min: 0.05, max: 0.95, step: 0.05 };
    this.threshold = element("input", {
      ...range,
      oninput: () => this.set({ ...this.state, threshold: this.threshold.valueAsNumber }),
    });
    this.offerRuns();
    this.node = this.build();
    this.open(location.hash.slice(1));
    addEventListener("hashchange", () => this.open(location.hash.slice(1)));
  }

  /** Show the state of a link, by default the example of the first run. */
  private open(fragment: string): void {
    const { state, notes } = fromFragment(fragment, this.runs);
    this.note.textContent = notes.join(" ");
    this.sentence.value = state.text;
    this.set(state, "sentence");
  }

  /** With a cause, all panels request inference, or the one whose index is `only`. */
  private set(state: State, cause: Cause | null = null, milliseconds = 0, only?: number): void {
    this.state = state;
    this.showControls();
    this.matchPanels();
    const refusal = refusalOf(split(state.text).length);
    if (refusal) this.errors[0]!.textContent = refusal;
    state.panels.forEach((own, at) => {
      if (refusal) this.panels[at]?.stop();
      const requests = !refusal && (only ?? at) === at;
      this.panels[at]?.update(state, own, requests ? cause : null, milliseconds);
    });
    clearTimeout(this.addressTimer);
    this.addressTimer = window.setTimeout(() => this.writeAddress(), ADDRESS);
  }

  /** Called with a delay, as browsers refuse frequent changes of the address; and very long ones. */
  private writeAddress(): void {
    const fragment = toFragment(this.state);
    if (fragment.length <= LONGEST_LINK) history.replaceState(null, "", `#${fragment}`);
  }

  private setPanel(at: number, next: Partial<PanelState>, cause?: Cause): void {
    const panels = this.state.panels.map((own, i) => (i === at ? { ...own, ...next } : own));
    this.set({ ...this.state, panels }, cause, 0, at);
  }

  /** A panel for each run of the state; existing ones are kept. */
  private matchPanels(): void {
    this.panels = this.state.panels.map((own, at) => {
      const known = this.panels[at];
      if (known?.run.name === own.run) return known;
      known?.stop();
      return this.newPanel(own, at);
    });
    this.errors.forEach((error, at) => {
      if (at >= this.panels.length) error.textContent = "";
    });
    const nodes = this.panels.map((panel) => panel.node);
    const same = nodes.length === this.holder.children.length;
    if (!same || nodes.some((node, at) => node !== this.holder.children[at])) {
      this.holder.replaceChildren(...nodes);
    }
    this.holder.classList.toggle("two", nodes.length === 2);
  }

  private newPanel(own: PanelState, at: number): Panel {
    const run = this.runs.find((run) => run.name === own.run)!;
    return new Panel(run, {
      change: (next, cause) => this.setPanel(at, next, cause),
      toggleMask: (word) => this.set(withMaskToggled(this.state, word), "sentence"),
      sentenceError: (message) => {
        const whose = message && this.panels.length > 1 ? `${run.name}: ` : "";
        this.errors[at]!.textContent = whose + message;
      },
    });
  }

  private offerRuns(): void {
    const options = () => this.runs.map(({ name }) => element("option", { value: name }, name));
    this.runChoice.append(...options());
    this.otherChoice.append(element("option", { value: NONE }, "nothing"), ...options());
    this.runChoice.addEventListener("change", () => this.chooseRun(0, this.runChoice.value));
    this.otherChoice.addEventListener("change", () => this.chooseRun(1, this.otherChoice.value));
  }

  private chooseRun(at: number, run: string): void {
    const [first, second] = this.state.panels;
    const found = this.runs.find(({ name }) => name === run);
    const chosen = found ? freshPanel(found) : null;
    const panels = at === 0 ? [chosen, second] : [first, chosen];
    this.set({ ...this.state, panels: panels.filter((panel) => !!panel) }, "sentence");
  }

  private showControls(): void {
    const { panels, threshold } = this.state;
    this.runChoice.value = panels[0]?.run ?? NONE;
    this.otherChoice.value = panels[1]?.run ?? NONE;
    this.threshold.value = String(threshold);
    const share = percent(threshold);
    this.thresholdValue.textContent = share;
    this.threshold.setAttribute("aria-valuetext", share);
  }

  private build(): HTMLElement {
    const title = element("h1", {}, "Probformer ", element("span", {}, "explorer"));
    const lead = element(
      "p",
      { class: "lead" },
      "For every word, the model infers a head: the word that it depends on. Arcs point from " +
        "heads to words, the stronger the likelier. Move the slider to follow inference step by step, " +
        "and click a word to hide it.",
    );
    const errors = element("div", { id: "sentence-errors" }, ...this.errors, this.note);
    const row = element(
      "div",
      { class: "choices" },
      labelled("Run", this.runChoice),
      labelled("Compare with", this.otherChoice),
      labelled("Arcs from", this.threshold, this.thresholdValue),
      linkButton(() => new URL(`#${toFragment(this.state)}`, location.href).href),
    );
    return element(
      "div",
      { class: "page" },
      element("header", { class: "top" }, title, themeSwitch().node),
      element(
        "main",
        {},
        lead,
        element("div", { class: "ask" }, labelled("Sentence", this.sentence), errors, row),
        this.holder,
      ),
    );
  }
}

/** Why a sentence is not sent, or "". */
function refusalOf(words: number): string {
  if (!words) return "Type a sentence.";
  const count = counted(words, "word");
  return words > MOST_WORDS ? `This has ${count}, too many for one sentence: the limit is ${MOST_WORDS}.` : "";
}

function labelled(text: string, input: HTMLElement, ...more: Node[]): HTMLElement {
  input.id = uniqueId("field");
  return element(
    "div",
    { class: "field" },
    element("label", { for: input.id }, text),
    input,
    ...more,
  );
}
