/** A table of the words: tag, most probable head, strongest labels. */

import { tagsOf } from "./answer";
import type { Label, Result, Run } from "./api";
import { element, percent } from "./dom";
import { keepingFocus } from "./focus";
import { LabelCard } from "./labelCard";
import type { MeaningsOf } from "./meanings";
import { type Heads, likeliestHeads } from "./strength";
import { escaped } from "./words";

const LABELS = 3;

interface Opened {
  word: number;
  label: number;
  /** The key of the button that opened it. */
  key: string;
}

export class WordTable {
  readonly node: HTMLElement;
  private readonly heading = element("tr");
  private readonly body = element("tbody");
  private readonly card: LabelCard;
  private opened: Opened | null = null;
  private redraw: () => void = () => undefined;

  constructor(
    private readonly run: Run,
    meanings: MeaningsOf,
    onHold: (word: number, label: number) => void,
  ) {
    this.card = new LabelCard(run, meanings, onHold, () => this.open(null));
    const table = element(
      "table",
      {},
      element("caption", { class: "unseen" }, `Heads and labels of the words, by ${run.name}`),
      element("thead", {}, this.heading),
      this.body,
    );
    const scroll = { class: "table", tabindex: 0, role: "region", "aria-label": "Words in detail" };
    this.node = element("div", scroll, table);
  }

  draw(result: Result, words: readonly string[], heads: Heads, step: number): void {
    this.redraw = () => keepingFocus(this.body, () => this.fill(result, words, heads, step));
    this.redraw();
  }

  private fill(result: Result, words: readonly string[], heads: Heads, step: number): void {
    const best = likeliestHeads(heads);
    const tags = tagsOf(result);
    const columns = ["word", ...(tags ? ["tag"] : []), "likeliest head"];
    if (heads.labels) columns.push("label of the arc");
    if (this.run.labels !== null) columns.push("strongest labels");
    this.heading.replaceChildren(...columns.map((name) => element("th", { scope: "col" }, name)));
    const rows = words.flatMap((word, at) => {
      const cells = [element("th", { scope: "row" }, element("bdi", {}, escaped(word)))];
      if (tags) cells.push(element("td", {}, tags[at] ?? ""));
      const arc = best[at];
      const head = arc && (arc.head === null ? "ROOT" : escaped(words[arc.head] ?? ""));
      cells.push(sharedCell(head ?? "none", arc?.probability));
      const label = arc?.label;
      if (heads.labels) cells.push(sharedCell(label ? escaped(label.label) : "", label?.p));
      const strongest = result.labels?.[step]?.[at];
      if (strongest) cells.push(this.labelCell(at, strongest.slice(0, LABELS).filter(({ p }) => p > 0)));
      const row = element("tr", {}, ...cells);
      if (this.opened?.word !== at) return [row];
      const below = element("td", { colspan: cells.length }, this.card.node);
      return [row, element("tr", { class: "opened" }, below)];
    });
    this.body.replaceChildren(...rows);
  }

  private labelCell(word: number, labels: readonly Label[]): HTMLTableCellElement {
    const buttons = labels.map(({ label, p }, rank) => {
      // by rank, so that the focus stays when a new answer has other labels
      const key = `label ${word} ${rank}`;
      const open = this.opened?.word === word && this.opened.label === label;
      const bar = element("span", { class: "bar" });
      bar.style.setProperty("--share", String(p));
      return element(
        "button",
        {
          type: "button",
          class: "label",
          "data-key": key,
          "aria-expanded": String(open),
          "aria-label": `label ${label}, ${percent(p)}: what does it mean?`,
          onclick: () => this.open(open ? null : { word, label, key }),
        },
        bar,
        element("span", { class: "number" }, String(label)),
        element("span", { class: "share" }, percent(p)),
      );
    });
    return element("td", {}, element("div", { class: "labels" }, ...buttons));
  }

  private open(opened: Opened | null): void {
    const before = this.opened;
    this.opened = opened;
    if (opened) this.card.show(opened.word, opened.label);
    this.redraw();
    if (!opened && before) {
      this.body.querySelector<HTMLElement>(`[data-key="${before.key}"]`)?.focus();
    }
  }
}

/** A text and its probability, if there is one. */
function sharedCell(text: string, p: number | undefined): HTMLTableCellElement {
  const share = element("span", { class: "share" }, p === undefined ? "" : percent(p));
  return element("td", {}, element("bdi", {}, text), " ", share);
}
