/** What a click on a word does: mask it, or choose it as a dependent and then as a head. */

import type { Clamps, Run } from "./api";
import { chips } from "./chips";
import { element } from "./dom";
import { type PanelState, withHead } from "./state";
import { escaped } from "./words";

interface Hooks {
  toggleMask(word: number): void;
  holdHead(clamps: Clamps): void;
  redraw(): void;
}

export class PickMode {
  readonly node = element("div", { class: "pick" });
  hides = true;
  /** The dependent whose head is chosen next. */
  picked: number | null = null;
  private readonly status = element("span", { role: "status", class: "dim" });
  private readonly toRoot: HTMLButtonElement | null;
  private panel: PanelState | null = null;

  constructor(
    run: Run,
    private readonly hooks: Hooks,
  ) {
    const onclick = () => this.hold("root");
    this.toRoot = run.has_root ? element("button", { type: "button", onclick }, "ROOT") : null;
    if (!run.can_clamp) return;
    const modes = [["hide", "hides it"], ["head", "gives it a head"]] as const;
    const choice = chips("A click on a word", modes, (mode) => {
      this.hides = mode === "hide";
      this.picked = null;
      hooks.redraw();
    });
    choice.choose("hide");
    const line = element("p", { class: "pick-line" }, this.status, this.toRoot);
    this.node.append(choice.node, line);
  }

  pick(word: number): void {
    if (this.hides) this.hooks.toggleMask(word);
    else if (this.picked === word) this.cancel();
    else if (this.picked !== null) this.hold(word);
    else {
      this.picked = word;
      this.hooks.redraw();
    }
  }

  reset(): void {
    this.picked = null;
  }

  /** Shows the next step. */
  say(words: readonly string[], panel: PanelState): void {
    this.panel = panel;
    const dependent = this.picked === null ? null : escaped(words[this.picked] ?? "");
    const next = dependent === null ? "Choose a word." : `Choose the head of “${dependent}”`;
    this.status.textContent = this.hides ? "" : next;
    if (this.toRoot) this.toRoot.hidden = dependent === null;
  }

  private hold(head: number | "root"): void {
    if (this.picked === null || !this.panel) return;
    const { channel, clamps } = this.panel;
    const where = typeof channel === "number" ? channel : "all";
    this.hooks.holdHead(withHead(clamps, { word: this.picked, head, channel: where }));
  }

  cancel(): void {
    if (this.picked === null) return;
    this.picked = null;
    this.hooks.redraw();
  }
}
