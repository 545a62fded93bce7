/** Small pictures of all channels; each is a button that chooses its channel. */

import { drawArcs, type Drawing, SMALL, type DrawnWord } from "./arcs";
import { element } from "./dom";
import { keepingFocus } from "./focus";
import type { StrongArc } from "./strength";

const NARROWEST = 250;
const MOST_COLUMNS = 4;

export class Grid {
  readonly node = element("div", { class: "grid" });
  private words: readonly DrawnWord[] = [];
  /** channels × steps × arcs */
  private channels: readonly StrongArc[][][] = [];
  private step = 0;
  private drawings: Drawing[] = [];
  private width = 0;

  constructor(private readonly onPick: (channel: number) => void) {
    new ResizeObserver(() => {
      if (this.node.clientWidth !== this.width) this.redraw();
    }).observe(this.node);
  }

  draw(words: readonly DrawnWord[], channels: readonly StrongArc[][][], step: number): void {
    this.words = words;
    this.channels = channels;
    this.step = step;
    this.redraw();
  }

  show(step: number): void {
    this.step = step;
    for (const drawing of this.drawings) drawing.show(step);
  }

  private redraw(): void {
    this.width = this.node.clientWidth;
    if (!this.width || !this.words.length) return;
    keepingFocus(this.node, () => {
      this.drawings = this.fitted();
      this.node.replaceChildren(...this.drawings.map((drawing, at) => this.cell(drawing, at)));
    });
    this.show(this.step);
  }

  /** The most columns with which every sentence fits into one row, if there are any. */
  private fitted(): Drawing[] {
    const most = Math.max(1, Math.min(MOST_COLUMNS, Math.floor(this.width / NARROWEST)));
    for (let columns = most; columns > 0; columns -= 1) {
      const drawings = this.inColumns(columns);
      if (drawings.every((drawing) => drawing.rows === 1)) return drawings;
    }
    return this.inColumns(most);
  }

  private inColumns(columns: number): Drawing[] {
    this.node.style.setProperty("--columns", String(columns));
    const room = this.width / columns - 28;
    return this.channels.map((steps) => drawArcs(this.words, steps, SMALL, room));
  }

  private cell(drawing: Drawing, channel: number): HTMLButtonElement {
    drawing.node.setAttribute("aria-hidden", "true");
    const onclick = () => this.onPick(channel);
    const title = element("span", { class: "cell-title" }, `channel ${channel}`);
    const attributes = { type: "button", class: "cell", "data-key": `cell ${channel}`, onclick };
    return element("button", attributes, title, drawing.node);
  }
}
