/** Descriptions of labels and channels: fetched when first needed, then kept. */

import {
  type ChannelMeaning,
  fetchMeanings,
  fetchOwners,
  type LabelMeaning,
  type Meanings,
  type Run,
} from "./api";
import { percent } from "./dom";
import { escaped } from "./words";

export class MeaningsOf {
  private all: Promise<Meanings> | null = null;
  private readonly owners = new Map<number, Promise<string[]>>();

  constructor(private readonly run: Run) {}

  async channel(number: number): Promise<string> {
    const { text, channels } = await this.measured();
    const found = channels.find((channel) => channel.number === number);
    return found ? `${channelText(found)} Measured on ${text}.` : "";
  }

  /** The words with the highest P(label | word) without context. */
  ownersOf(label: number): Promise<string[]> {
    const known = this.owners.get(label) ?? fetchOwners(this.run.name, label);
    this.owners.set(label, known);
    known.catch(() => this.owners.delete(label)); // fetched again next time
    return known;
  }

  async label(number: number): Promise<string> {
    const { text, labels } = await this.measured();
    const found = labels?.find((label) => label.label === number);
    return found ? `${labelText(found)} Measured on ${text}.` : "";
  }

  private measured(): Promise<Meanings> {
    const pending = this.all ?? fetchMeanings(this.run.name);
    this.all = pending;
    pending.catch(() => (this.all = null));
    return pending;
  }
}

function channelText(channel: ChannelMeaning): string {
  const before = channel.before >= 0.5;
  const share = percent(before ? channel.before : 1 - channel.before);
  const parts = [
    `the head comes ${before ? "before" : "after"} the word in ${share} of cases`,
    `${channel.distance.toFixed(1)} words away on average`,
  ];
  const links = channel.links.slice(0, 3).map(([word, head]) => `${escaped(word)} ← ${escaped(head)}`);
  if (links.length) parts.push(`more often than by chance, it links ${links.join(", ")}`);
  return `Channel ${channel.number}: ${parts.join("; ")}.`;
}

function labelText(label: LabelMeaning): string {
  const tags = label.tags.slice(0, 3).map(([tag, share]) => `${percent(share)} are ${escaped(tag)}`);
  const parts = [`It is the strongest label of ${percent(label.strongest)} of all words`];
  if (tags.length) parts.push(`of these, ${tags.join(", ")}`);
  return `${parts.join("; ")}.`;
}
