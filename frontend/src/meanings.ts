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
import { shown } from "./words";

export class MeaningsOf {
  private all: Promise<Meanings> | null = null;
  private readonly owners = new Map<number, Promise<string[]>>();

  constructor(private readonly run: Run) {}

  async channel(number: number): Promise<string> {
    const { text, channels } = await this.measured();
    const found = channels.find((channel) => channel.number === number);
    return found ? `${inWords(found)} Measured on ${text}.` : "";
  }

  /** The words that own a label without context. */
  ownersOf(label: number): Promise<string[]> {
    const known = this.owners.get(label) ?? fetchOwners(this.run.name, label);
    this.owners.set(label, known);
    known.catch(() => this.owners.delete(label)); // to be asked again
    return known;
  }

  async label(number: number): Promise<string> {
    const { text, labels } = await this.measured();
    const found = labels?.find((label) => label.label === number);
    return found ? `${labelInWords(found)} Measured on ${text}.` : "";
  }

  private measured(): Promise<Meanings> {
    const asked = this.all ?? fetchMeanings(this.run.name);
    this.all = asked;
    asked.catch(() => (this.all = null));
    return asked;
  }
}

function inWords(channel: ChannelMeaning): string {
  const before = channel.before >= 0.5;
  const share = percent(before ? channel.before : 1 - channel.before);
  const said = [
    `the head comes ${before ? "before" : "after"} the word in ${share} of cases`,
    `${channel.distance.toFixed(1)} words away on average`,
  ];
  const links = channel.links.slice(0, 3).map(([word, head]) => `${shown(word)} ← ${shown(head)}`);
  if (links.length) said.push(`more than chance would, it links ${links.join(", ")}`);
  return `Channel ${channel.number}: ${said.join("; ")}.`;
}

function labelInWords(label: LabelMeaning): string {
  const tags = label.tags.slice(0, 3).map(([tag, share]) => `${percent(share)} are ${shown(tag)}`);
  const said = [`It is the strongest label of ${percent(label.strongest)} of all words`];
  if (tags.length) said.push(`of these, ${tags.join(", ")}`);
  return `${said.join("; ")}.`;
}
