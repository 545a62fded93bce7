/** The meaning of a label, and a button that clamps a word to it. */

import { ApiError, type Run } from "./api";
import { element, errorLine } from "./dom";
import type { MeaningsOf } from "./meanings";
import { escaped } from "./words";

export class LabelCard {
  readonly node: HTMLElement;
  private readonly title = element("strong");
  private readonly owners = element("span");
  private readonly meaning = element("p", { class: "dim" });
  private readonly error = errorLine();
  private word = 0;
  private label = 0;

  constructor(
    run: Run,
    private readonly meanings: MeaningsOf,
    onHold: (word: number, label: number) => void,
    onClose: () => void,
  ) {
    const hold = () => onHold(this.word, this.label);
    const holdButton = { type: "button", "data-key": "hold label", onclick: hold };
    const close = { type: "button", class: "plain", "data-key": "close label", onclick: onClose };
    this.node = element(
      "div",
      { class: "card", role: "status" },
      element("p", {}, this.title, " ", this.owners),
      this.meaning,
      this.error,
      element(
        "p",
        { class: "buttons" },
        run.can_clamp ? element("button", holdButton, "Hold the word at this label") : null,
        element("button", close, "Close"),
      ),
    );
  }

  show(word: number, label: number): void {
    this.word = word;
    this.label = label;
    this.title.textContent = `Label ${label}`;
    this.owners.textContent = "…";
    this.meaning.textContent = "";
    this.error.textContent = "";
    const current = () => this.label === label;
    this.meanings.ownersOf(label).then(
      (words) => {
        if (!current()) return;
        this.owners.textContent = words.length
          ? `is owned by ${words.map(escaped).join(" · ")}`
          : "is owned by no word";
      },
      (reason: unknown) => this.fail(reason, current()),
    );
    this.meanings.label(label).then(
      (text) => {
        if (current()) this.meaning.textContent = text;
      },
      (reason: unknown) => this.fail(reason, current()),
    );
  }

  private fail(reason: unknown, current: boolean): void {
    if (!(reason instanceof ApiError)) throw reason;
    if (current) this.error.textContent = reason.message;
    if (this.owners.textContent === "…") this.owners.textContent = "";
  }
}
