/** Arcs above a threshold, from distributions over heads. */

import type { Channel, LabelledArc, Result, Run } from "./api";

export interface StrongArc {
  dependent: number;
  /** null for ROOT. */
  head: number | null;
  probability: number;
  /** null where arcs have no labels. */
  label: LabelledArc | null;
}

/** Heads (n × n) and root (n) of a step, in one channel or averaged over channels. */
export interface Heads {
  heads: number[][];
  root: number[] | null;
  /** Labels of the arcs to each word, in the channel that has them. */
  labels: LabelledArc[][] | null;
}

export function headsOf(result: Result, step: number, channel: Channel, run: Run): Heads {
  const heads = result.heads[step] ?? [];
  const root = result.root?.[step] ?? null;
  const labels = channel === run.channel ? (result.arc_labels?.[step] ?? null) : null;
  if (typeof channel === "number") {
    return { heads: heads[channel] ?? [], root: root?.[channel] ?? null, labels };
  }
  return {
    labels,
    heads: result.words.map((_, i) =>
      result.words.map((_, j) => mean(heads.map((rows) => rows[i]?.[j] ?? 0))),
    ),
    root: root && result.words.map((_, i) => mean(root.map((row) => row[i] ?? 0))),
  };
}

/** Arcs of at least that probability; attention of a word to itself is not drawn. */
export function strongArcs({ heads, root, labels }: Heads, threshold: number): StrongArc[] {
  const found: StrongArc[] = [];
  heads.forEach((row, dependent) => {
    row.forEach((probability, head) => {
      if (probability >= threshold && head !== dependent) {
        found.push({ dependent, head, probability, label: labelOf(labels, dependent, head) });
      }
    });
  });
  root?.forEach((probability, dependent) => {
    if (probability < threshold) return;
    found.push({ dependent, head: null, probability, label: labelOf(labels, dependent, null) });
  });
  return found;
}

/** The likeliest head of each word among the others and ROOT. */
export function likeliestHeads({ heads, root, labels }: Heads): (StrongArc | null)[] {
  return heads.map((row, dependent) => {
    let best: StrongArc | null = null;
    row.forEach((probability, head) => {
      if (head !== dependent && (!best || probability > best.probability)) {
        best = { dependent, head, probability, label: labelOf(labels, dependent, head) };
      }
    });
    const above = root?.[dependent] ?? 0;
    const other = best as StrongArc | null; // the compiler does not look into forEach
    return root && (!other || above > other.probability)
      ? { dependent, head: null, probability: above, label: labelOf(labels, dependent, null) }
      : other;
  });
}

function labelOf(
  labels: LabelledArc[][] | null,
  dependent: number,
  head: number | null,
): LabelledArc | null {
  return labels?.[dependent]?.find((arc) => arc.head === (head ?? "root")) ?? null;
}

function mean(values: number[]): number {
  return values.reduce((total, value) => total + value, 0) / (values.length || 1);
}
