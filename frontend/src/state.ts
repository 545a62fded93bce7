/** The state of the page, which a link can hold, and its changes. */

import type { Channel, Clamps, HeadClamp, LabelClamp, Run } from "./api";
import { MASK, split } from "./words";

export interface PanelState {
  run: string;
  channel: Channel;
  /** Counted from 1; null for the last one. */
  step: number | null;
  clamps: Clamps;
}

export interface State {
  text: string;
  /** Positions of hidden words. */
  masks: ReadonlySet<number>;
  threshold: number;
  /** One, or two to compare. */
  panels: PanelState[];
}

/** Averages over more channels have smaller maxima. */
export function usualThreshold(channels: number): number {
  return channels > 4 ? 0.15 : 0.25;
}

export function freshPanel({ name, channel }: Run): PanelState {
  return { run: name, channel: channel ?? "average", step: null, clamps: { heads: [], labels: [] } };
}

/** The words with masks, as sent to the model. */
export function sentWords(state: State): string[] {
  return split(state.text).map((word, at) => (state.masks.has(at) ? MASK : word));
}

export function withMaskToggled(state: State, word: number): State {
  const masks = new Set(state.masks);
  if (!masks.delete(word)) masks.add(word);
  return { ...state, masks };
}

/** Masks and clamps move with their words; those of edited words are dropped. */
export function withText(state: State, text: string): State {
  const place = placesAfterEdit(split(state.text), split(text));
  const masks = new Set<number>();
  for (const word of state.masks) {
    const now = place(word);
    if (now !== null) masks.add(now);
  }
  const panels = state.panels.map((panel) => ({
    ...panel,
    clamps: {
      heads: panel.clamps.heads.flatMap((clamp) => moved(clamp, place)),
      labels: panel.clamps.labels.flatMap((clamp) => {
        const word = place(clamp.word);
        return word === null ? [] : [{ ...clamp, word }];
      }),
    },
  }));
  return { ...state, text, masks, panels };
}

type Place = (word: number) => number | null;

function moved(clamp: HeadClamp, place: Place): HeadClamp[] {
  const word = place(clamp.word);
  const head = clamp.head === "root" ? "root" : place(clamp.head);
  return word === null || head === null ? [] : [{ ...clamp, word, head }];
}

/** The new position of each word; null unless it is in the common prefix or suffix. */
function placesAfterEdit(before: string[], after: string[]): Place {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start += 1;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  return (word) => {
    if (word < start) return word;
    return word >= before.length - end ? word + after.length - before.length : null;
  };
}

/** A word has one head in a channel: a new clamp replaces those that it contradicts. */
export function withHead(clamps: Clamps, added: HeadClamp): Clamps {
  const kept = clamps.heads.filter(
    (clamp) =>
      clamp.word !== added.word ||
      (added.channel !== "all" && clamp.channel !== "all" && clamp.channel !== added.channel),
  );
  return { ...clamps, heads: [...kept, added] };
}

export function withLabel(clamps: Clamps, added: LabelClamp): Clamps {
  const kept = clamps.labels.filter((clamp) => clamp.word !== added.word);
  return { ...clamps, labels: [...kept, added] };
}

export function clampCount(clamps: Clamps): number {
  return clamps.heads.length + clamps.labels.length;
}
