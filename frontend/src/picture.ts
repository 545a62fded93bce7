/** The large picture: words as buttons, and arcs of the current step. */

import { type Drawing, drawArcs, FULL, NARROW, type DrawnWord } from "./arcs";
import { element } from "./dom";
import { keepingFocus } from "./focus";
import type { StrongArc } from "./strength";
import { runRightToLeft } from "./words";

export interface WordButton extends DrawnWord {
  pressed: boolean;
  /** For screen readers. */
  name: string;
}

const NARROW_BELOW = 560;

export class Picture {
  readonly node = element("div", { class: "picture" });
  private words: readonly WordButton[] = [];
  private steps: readonly StrongArc[][] = [];
  private step = 0;
  private drawing: Drawing | null = null;
  private width = 0;
  /** The word that the Tab key stops at; arrow keys move it. */
  private stop = 0;

  constructor(private readonly onPick: (word: number) => void) {
    new ResizeObserver(() => {
      if (this.node.clientWidth !== this.width) this.redraw();
    }).observe(this.node);
  }

  draw(words: readonly WordButton[], steps: readonly StrongArc[][], step: number): void {
    this.words = words;
    this.steps = steps;
    this.step = step;
    this.stop = Math.min(this.stop, Math.max(0, words.length - 1));
    this.redraw();
  }

  show(step: number): void {
    this.step = step;
    this.drawing?.show(step);
  }

  private redraw(): void {
    this.width = this.node.clientWidth;
    if (!this.width || !this.words.length) return;
    keepingFocus(this.node, () => {
      const size = this.width < NARROW_BELOW ? NARROW : FULL;
      const drawing = drawArcs(this.words, this.steps, size, this.width - 4);
      drawing.node.setAttribute("role", "group");
      drawing.node.setAttribute("aria-label", "The sentence. Arrow keys go from word to word.");
      drawing.words.forEach((word, at) => this.makeButton(word, at));
      drawing.show(this.step);
      this.drawing = drawing;
      this.node.replaceChildren(drawing.node);
    });
  }

  private makeButton(node: SVGGElement, at: number): void {
    const word = this.words[at];
    if (!word) return;
    node.setAttribute("role", "button");
    node.setAttribute("aria-pressed", String(word.pressed));
    node.setAttribute("aria-label", word.name);
    node.setAttribute("data-key", `word ${at}`);
    node.setAttribute("tabindex", at === this.stop ? "0" : "-1");
    node.addEventListener("click", () => {
      this.moveStop(at);
      this.onPick(at);
    });
    node.addEventListener("keydown", (event) => this.onKey(event, at));
    for (const kind of ["pointerenter", "focus"]) {
      node.addEventListener(kind, () => this.highlight(at));
    }
    for (const kind of ["pointerleave", "blur"]) {
      node.addEventListener(kind, () => this.highlight(null));
    }
  }

  private onKey(event: KeyboardEvent, at: number): void {
    const forth = runRightToLeft(this.words.map((word) => word.text)) ? -1 : 1;
    const last = this.words.length - 1;
    const goals: Record<string, number> = {
      ArrowRight: at + forth,
      ArrowLeft: at - forth,
      Home: 0,
      End: last,
    };
    const goal = goals[event.key];
    if (event.key === "Enter" || event.key === " ") {
      this.onPick(at);
    } else if (goal === undefined) {
      return;
    } else {
      this.moveStop(Math.max(0, Math.min(last, goal)));
      this.drawing?.words[this.stop]?.focus();
    }
    event.preventDefault();
  }

  private moveStop(to: number): void {
    this.drawing?.words[this.stop]?.setAttribute("tabindex", "-1");
    this.drawing?.words[to]?.setAttribute("tabindex", "0");
    this.stop = to;
  }

  /** Emphasises the arcs of one word. */
  private highlight(word: number | null): void {
    for (const arc of this.drawing?.arcs ?? []) {
      const near = word === null || arc.dependent === word || arc.head === word;
      arc.group.classList.toggle("away", !near);
      arc.label.classList.toggle("away", !near);
    }
  }
}
