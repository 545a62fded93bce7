/** What labels and channels mean: asked for when first needed, then kept. */

import {
  type ChannelMeaning,
  fetchMeanings,
  fetchOwners,
  type LabelMeaning,
  type Meanings,
  type Run,
} from "./api";
import { percent } from "./dom";

export class MeaningsOf {
  private all: Promise<Meanings> | null = null;
  private readonly owners = new Map<number, Promise<string[]>>();

  constructor(private readonly run: Run) {}

  async channel(number: number): Promise<string> {
    const { text, channels } = await this.measured();
    const found = channels.find((channel) => channel.number === number);
    return found ? `${inWords(found)} (${text})` : "Nothing is known about this channel.";
  }

  /** The words that own a label without context. */
  ownersOf(label: number): Promise<string[]> {
    const known = this.owners.get(label) ?? fetchOwners(this.run.name, label);
    this.owners.set(label, known);
    known.catch(() => this.owners.delete(label)); // to be asked again
    return known;
  }

  async label(number: number): Promise<string> {
    const { labels } = await this.measured();
    const found = labels?.find((label) => label.label === number);
    return found ? labelInWords(found) : "";
  }

  private measured(): Promise<Meanings> {
    const asked = this.all ?? fetchMeanings(this.run.name);
    this.all = asked;
    asked.catch(() => (this.all = null));
    return asked;
  }
}

function inWords(channel: ChannelMeaning): string {
  const said: string[] = [];
  if (channel.before !== undefined) {
    const before = channel.before >= 0.5;
    const share = percent(before ? channel.before : 1 - channel.before);
    said.push(`the head comes ${before ? "before" : "after"} the word ${share} of the time`);
  }
  if (channel.distance !== undefined) {
    said.push(`${channel.distance.toFixed(1)} words away on average`);
  }
  const links = (channel.links ?? []).slice(0, 3).map(([word, head]) => `${word} ← ${head}`);
  if (links.length) said.push(`it links ${links.join(", ")} more than chance would`);
  return `Channel ${channel.number}: ${said.join("; ")}`;
}

function labelInWords(label: LabelMeaning): string {
  const said: string[] = [];
  if (label.strongest !== undefined) {
    said.push(`strongest for ${percent(label.strongest)} of all words`);
  }
  const tags = (label.tags ?? []).slice(0, 3).map(([tag, share]) => `${tag} ${percent(share)}`);
  if (tags.length) said.push(`these are ${tags.join(", ")}`);
  return said.join("; ");
}
