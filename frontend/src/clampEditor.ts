/** Clamped heads and labels: a form to add one, and a list to remove them. */

import type { Clamps, Run } from "./api";
import { element, errorLine, uniqueId } from "./dom";
import { keepingFocus } from "./focus";
import { clampCount, withHead, withLabel } from "./state";
import { escaped } from "./words";

export class ClampEditor {
  readonly node: HTMLElement;
  readonly error = errorLine();
  private readonly list = element("ul", { class: "clamp-list", "aria-label": "Held fixed" });
  private readonly dependent = element("select");
  private readonly head = element("select");
  private readonly channel = element("select");
  private readonly labelled = element("select");
  private readonly label: HTMLInputElement;
  private words: readonly string[] = [];
  private clamps: Clamps = { heads: [], labels: [] };

  constructor(
    private readonly run: Run,
    private readonly onChange: (clamps: Clamps) => void,
  ) {
    const last = (run.labels ?? 1) - 1;
    this.label = element("input", { type: "number", min: 0, max: last, value: 0, required: true });
    this.channel.append(option("all", "all channels"));
    for (let at = 0; at < run.channels; at += 1) this.channel.append(option(at, `channel ${at}`));
    const heads = element(
      "form",
      { onsubmit: (event: Event) => this.addHead(event) },
      ...field("The head of", this.dependent),
      ...field("is", this.head),
      ...field("in", this.channel),
      element("button", {}, "Hold head"),
    );
    const labels = element(
      "form",
      { onsubmit: (event: Event) => this.addLabel(event) },
      ...field("The label of", this.labelled),
      ...field("is", this.label),
      element("button", {}, "Hold label"),
    );
    const summary = element("summary", {}, "Hold a head or a label");
    const forms = element("details", {}, summary, heads, labels);
    this.node = element("div", { class: "clamps" }, this.list, this.error, forms);
  }

  draw(words: readonly string[], clamps: Clamps): void {
    if (words.join(" ") !== this.words.join(" ")) this.fillOptions(words);
    this.clamps = clamps;
    keepingFocus(this.list, () => this.list.replaceChildren(...this.items()));
    this.list.hidden = !clampCount(clamps);
  }

  private fillOptions(words: readonly string[]): void {
    this.words = words;
    const options = () => words.map((word, at) => option(at, `${at + 1} ${escaped(word)}`));
    const roots = this.run.has_root ? [option("root", "ROOT")] : [];
    refill(this.dependent, options());
    refill(this.head, [...roots, ...options()]);
    refill(this.labelled, options());
    if (this.head.value === this.dependent.value) this.head.value = words.length > 1 ? "1" : "";
  }

  private items(): HTMLElement[] {
    const { heads, labels } = this.clamps;
    const name = (word: number) => escaped(this.words[word] ?? "");
    const ofHeads = heads.map((clamp) => {
      const head = clamp.head === "root" ? "ROOT" : name(clamp.head);
      const where = clamp.channel === "all" ? "in all channels" : `in channel ${clamp.channel}`;
      const kept = { ...this.clamps, heads: heads.filter((other) => other !== clamp) };
      return this.item(`${name(clamp.word)} ← ${head}`, where, kept);
    });
    const ofLabels = labels.map((clamp) => {
      const kept = { ...this.clamps, labels: labels.filter((other) => other !== clamp) };
      return this.item(name(clamp.word), `has label ${clamp.label}`, kept);
    });
    return [...ofHeads, ...ofLabels];
  }

  private item(what: string, where: string, without: Clamps): HTMLElement {
    const remove = {
      type: "button",
      class: "remove",
      "aria-label": `Let go of ${what} ${where}`,
      onclick: () => {
        this.onChange(without);
        this.node.querySelector<HTMLElement>(".remove, summary")?.focus();
      },
    };
    const text = [element("bdi", {}, what), ` ${where} `];
    return element("li", {}, ...text, element("button", remove, "×"));
  }

  private addHead(event: Event): void {
    event.preventDefault();
    const word = Number(this.dependent.value);
    const head = this.head.value === "root" ? "root" : Number(this.head.value);
    const channel = this.channel.value === "all" ? "all" : Number(this.channel.value);
    if (this.words.length < 2 && head !== "root") {
      this.error.textContent = "A head is another word: type a longer sentence.";
    } else if (head === word) {
      this.error.textContent = "A word cannot be its own head.";
    } else {
      this.onChange(withHead(this.clamps, { word, head, channel }));
    }
  }

  private addLabel(event: Event): void {
    event.preventDefault();
    const word = Number(this.labelled.value);
    this.onChange(withLabel(this.clamps, { word, label: this.label.valueAsNumber }));
  }
}

function option(value: string | number, text: string): HTMLOptionElement {
  return element("option", { value }, text);
}

/** Keeps the chosen option if it still exists. */
function refill(select: HTMLSelectElement, options: HTMLOptionElement[]): void {
  const chosen = select.value;
  select.replaceChildren(...options);
  if (options.some((option) => option.value === chosen)) select.value = chosen;
}

function field(text: string, input: HTMLElement): Node[] {
  input.id = uniqueId("field");
  return [element("label", { for: input.id }, text), input];
}
