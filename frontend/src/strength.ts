/** Arcs above a threshold, from distributions over heads. */

import type { Channel, Result } from "./api";

export interface StrongArc {
  dependent: number;
  /** null for ROOT. */
  head: number | null;
  probability: number;
}

/** Heads (n × n) and root (n) of a step, in one channel or averaged over channels. */
export interface Heads {
  heads: number[][];
  root: number[] | null;
}

export function headsOf(result: Result, step: number, channel: Channel): Heads {
  const heads = result.heads[step] ?? [];
  const root = result.root?.[step] ?? null;
  if (typeof channel === "number") {
    return { heads: heads[channel] ?? [], root: root?.[channel] ?? null };
  }
  return {
    heads: result.words.map((_, i) =>
      result.words.map((_, j) => mean(heads.map((rows) => rows[i]?.[j] ?? 0))),
    ),
    root: root && result.words.map((_, i) => mean(root.map((row) => row[i] ?? 0))),
  };
}

/** Arcs of at least that probability; attention of a word to itself is not drawn. */
export function strongArcs({ heads, root }: Heads, threshold: number): StrongArc[] {
  const found: StrongArc[] = [];
  heads.forEach((row, dependent) => {
    row.forEach((probability, head) => {
      if (probability >= threshold && head !== dependent) {
        found.push({ dependent, head, probability });
      }
    });
  });
  root?.forEach((probability, dependent) => {
    if (probability >= threshold) found.push({ dependent, head: null, probability });
  });
  return found;
}

/** The likeliest head of each word among the others and ROOT. */
export function likeliestHeads({ heads, root }: Heads): (StrongArc | null)[] {
  return heads.map((row, dependent) => {
    let best: StrongArc | null = null;
    row.forEach((probability, head) => {
      if (head !== dependent && (!best || probability > best.probability)) {
        best = { dependent, head, probability };
      }
    });
    const above = root?.[dependent] ?? 0;
    const other = best as StrongArc | null; // the compiler does not look into forEach
    return root && (!other || above > other.probability)
      ? { dependent, head: null, probability: above }
      : other;
  });
}

function mean(values: number[]): number {
  return values.reduce((total, value) => total + value, 0) / (values.length || 1);
}
