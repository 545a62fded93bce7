/** Requests of inference: delayed while the user types, and outdated answers are dropped. */

import { ApiError, infer, type Result } from "./api";
import { type PanelState, sentWords, type State } from "./state";
import { split } from "./words";

/** A sentence with the answer to it. */
export interface Inferred {
  /** As the user typed it. */
  text: string;
  words: string[];
  masks: ReadonlySet<number>;
  result: Result;
}

export class InferenceClient {
  private timer = 0;
  private pending: AbortController | null = null;

  constructor(
    private readonly onInferred: (inferred: Inferred) => void,
    private readonly onError: (message: string) => void,
  ) {}

  request(state: State, panel: PanelState, milliseconds: number): void {
    this.cancel();
    const pending = new AbortController();
    this.pending = pending;
    this.timer = window.setTimeout(() => void this.send(state, panel, pending), milliseconds);
  }

  cancel(): void {
    clearTimeout(this.timer);
    this.pending?.abort();
    this.pending = null;
  }

  private async send(state: State, panel: PanelState, mine: AbortController): Promise<void> {
    try {
      const result = await infer(panel.run, sentWords(state), panel.clamps, mine.signal);
      if (mine !== this.pending) return;
      this.pending = null;
      const { text, masks } = state;
      this.onInferred({ text, words: split(text), masks, result });
    } catch (reason) {
      if (mine !== this.pending) return;
      this.pending = null;
      if (!(reason instanceof ApiError)) throw reason;
      this.onError(reason.message);
    }
  }
}
