/** Choice of the channel to show, with a description of it. */

import { ApiError, type Channel, type Run } from "./api";
import { type Chips, chips } from "./chips";
import { element, errorLine } from "./dom";
import type { MeaningsOf } from "./meanings";

export class ChannelChoice {
  readonly node: HTMLElement;
  private readonly choice: Chips;
  private readonly meaning = element("p", { class: "dim meaning", role: "status" });
  private readonly error = errorLine();
  private shown: Channel | null = null;

  constructor(
    private readonly run: Run,
    private readonly meanings: MeaningsOf,
    onChange: (channel: Channel) => void,
  ) {
    const numbers = Array.from({ length: run.channels }, (_, at) => String(at));
    const options = ["average", "all", ...numbers].map((name) => [name, name] as const);
    this.choice = chips("Channel", options, (value) =>
      onChange(value === "average" || value === "all" ? value : Number(value)),
    );
    this.node = element("div", { class: "channel" }, this.choice.node, this.meaning, this.error);
  }

  show(channel: Channel): void {
    if (channel === this.shown) return;
    this.shown = channel;
    this.choice.choose(String(channel));
    this.error.textContent = "";
    this.meaning.textContent = typeof channel === "number" ? "…" : this.description(channel);
    if (typeof channel !== "number") return;
    this.meanings.channel(channel).then(
      (text) => {
        if (this.shown === channel) this.meaning.textContent = text;
      },
      (reason: unknown) => {
        if (!(reason instanceof ApiError)) throw reason;
        if (this.shown !== channel) return;
        this.meaning.textContent = "";
        this.error.textContent = reason.message;
      },
    );
  }

  private description(channel: "average" | "all"): string {
    const what = this.run.model === "pt" ? "channel" : "attention head";
    const each = `Each ${what} chooses a head for every word`;
    return channel === "average" ? `${each}; this is their average.` : `${each}.`;
  }
}
