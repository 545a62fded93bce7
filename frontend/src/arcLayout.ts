/**
 * Arc layout: positions of words and arcs, as in viz/arc_layout.py; a test compares the two.
 *
 * Every end of an arc has its own position (port) at its word, ordered so that no arc crosses those
 * beneath it. A sentence that is too long is broken into rows; an arc between rows runs to the edge
 * of both.
 */

export interface Arc {
  dependent: number;
  /** null for ROOT. */
  head: number | null;
  /** Width of the text at the top of the arc, which is at least as long. */
  mark: number;
}

export interface Measure {
  /** Space between words. */
  gap: number;
  /** Distance between the ends of arcs at a word. */
  port: number;
  /** Width of the text "ROOT" above the word that it heads. */
  root: number;
  /** At both edges of a row, if there are several rows. */
  margin: number;
  /** Maximum width of a row; a single word may be wider. */
  limit: number;
  /** Maximum extra space for each word of a sentence that does not fill its row; 0 in Python. */
  spread: number;
}

/** An arc, or the part of it that is in one row. */
export interface Bow {
  arc: Arc;
  /** 1 is nearest to the words. */
  level: number;
  /** x of both ends; if the word is in another row, the edge. */
  head: number;
  dependent: number;
  /** The word in another row, if there is one. */
  elsewhere: number | null;
}

export interface Row {
  /** x of the middle of each word. */
  places: Map<number, number>;
  bows: Bow[];
  /** The arcs from ROOT, straight down at x. */
  roots: { arc: Arc; x: number }[];
  width: number;
  levels: number;
}

interface Part {
  start: number;
  stop: number;
}

/** Break the sentence into rows of equal width, and place words and arcs. */
export function layOut(
  widths: readonly number[],
  given: readonly Arc[],
  measure: Measure,
  rightToLeft: boolean,
): Row[] {
  const arcs = [...given].sort(
    (a, b) => reach(a) - reach(b) || leftEnd(a) - leftEnd(b) || a.dependent - b.dependent,
  );
  const ports = widths.map((_, word) => portsOf(word, arcs));
  const tight = widths.map((width, word) => slot(width, ports[word] ?? [], measure));
  makeRoomForMarks(tight, arcs, ports, measure.port);
  const spare = Math.max(0, measure.limit - sum(tight)) / tight.length;
  const slots = tight.map((width) => width + Math.min(spare, measure.spread));
  const margin = sum(slots) > measure.limit ? measure.margin : 0;
  const parts = breakEvenly(slots, measure.limit - 2 * margin);
  const width = Math.max(...parts.map((part) => sum(slots.slice(part.start, part.stop))));
  const whole = width + 2 * margin;
  const rows = parts.map((part) => row(part, arcs, ports, slots, measure.port, margin, whole));
  return rightToLeft ? rows.map(mirrored) : rows;
}

function reach(arc: Arc): number {
  return arc.head === null ? 0 : Math.abs(arc.head - arc.dependent);
}

function leftEnd(arc: Arc): number {
  return Math.min(arc.head ?? arc.dependent, arc.dependent);
}

/** The arcs that end at a word, from left to right: the longest in the middle, around ROOT. */
function portsOf(word: number, arcs: readonly Arc[]): Arc[] {
  const here = arcs.filter((arc) => arc.dependent === word || arc.head === word);
  const other = (arc: Arc) => (arc.dependent === word ? arc.head : arc.dependent);
  const left = here.filter((arc) => (other(arc) ?? word) < word);
  const right = here.filter((arc) => (other(arc) ?? word) > word);
  return [...left, ...here.filter((arc) => other(arc) === null), ...right.reverse()];
}

/** Width of a word with its ports and the gap. */
function slot(width: number, ports: readonly Arc[], measure: Measure): number {
  const last = ports.length - 1;
  const needed = [width, measure.port * last];
  ports.forEach((arc, at) => {
    // ROOT is not always in the middle
    const text = Math.max(measure.root, arc.mark);
    if (arc.head === null) needed.push(text + measure.port * Math.abs(2 * at - last));
  });
  return Math.max(...needed) + measure.gap;
}

/** Widens the words below an arc that is shorter than its mark; short arcs come first. */
function makeRoomForMarks(
  slots: number[],
  arcs: readonly Arc[],
  ports: readonly Arc[][],
  distance: number,
): void {
  for (const arc of arcs) {
    if (arc.head === null) continue;
    const first = leftEnd(arc);
    const last = Math.max(arc.head, arc.dependent);
    const below = sum(slots.slice(first + 1, last)) + ((slots[first] ?? 0) + (slots[last] ?? 0)) / 2;
    const ends = portAt(arc, ports[last] ?? [], distance) - portAt(arc, ports[first] ?? [], distance);
    const missing = arc.mark - below - ends;
    if (missing <= 0) continue;
    // half of the outer words is outside the arc
    for (let word = first; word <= last; word += 1) slots[word]! += missing / (last - first);
  }
}

/** x of the end of an arc, from the middle of its word. */
function portAt(arc: Arc, ports: readonly Arc[], distance: number): number {
  return distance * (ports.indexOf(arc) - (ports.length - 1) / 2);
}

/** As few rows as possible, of about equal width, so that the last one is not almost empty. */
function breakEvenly(slots: readonly number[], limit: number): Part[] {
  const fewest = breakAt(slots, limit).length;
  let even = Math.min(sum(slots) / fewest, limit);
  while (breakAt(slots, even).length > fewest) even = Math.min(1.02 * even, limit);
  return breakAt(slots, even);
}

function breakAt(slots: readonly number[], limit: number): Part[] {
  const starts = [0];
  let used = 0;
  slots.forEach((width, at) => {
    if (used && used + width > limit) {
      starts.push(at);
      used = 0;
    }
    used += width;
  });
  return starts.map((start, at) => ({ start, stop: starts[at + 1] ?? slots.length }));
}

function row(
  part: Part,
  arcs: readonly Arc[],
  ports: readonly Arc[][],
  slots: readonly number[],
  port: number,
  margin: number,
  width: number,
): Row {
  const places = new Map<number, number>();
  let x = margin;
  for (let word = part.start; word < part.stop; word += 1) {
    const room = slots[word] ?? 0;
    places.set(word, x + room / 2);
    x += room;
  }
  const end = (arc: Arc, word: number): number => {
    const place = places.get(word);
    if (place === undefined) return word < part.start ? margin : width - margin;
    return place + portAt(arc, ports[word] ?? [], port);
  };
  const here = arcs.flatMap((arc) =>
    arc.head !== null && (places.has(arc.head) || places.has(arc.dependent))
      ? [{ arc, head: arc.head }]
      : [],
  );
  const heights = levels(here.map(({ arc, head }) => span(arc.dependent, head, part)));
  const bows = here.map(({ arc, head }, at) => ({
    arc,
    level: heights[at] ?? 1,
    head: end(arc, head),
    dependent: end(arc, arc.dependent),
    elsewhere: [head, arc.dependent].find((word) => !places.has(word)) ?? null,
  }));
  const roots = arcs
    .filter((arc) => arc.head === null && places.has(arc.dependent))
    .map((arc) => ({ arc, x: end(arc, arc.dependent) }));
  return { places, bows, roots, width, levels: Math.max(0, ...heights) };
}

/** The first and the last word below an arc; the edges of the row count as words. */
function span(one: number, other: number, part: Part): [number, number] {
  return [Math.max(Math.min(one, other), part.start - 1), Math.min(Math.max(one, other), part.stop)];
}

/** For each span the lowest level above all spans within it, apart from all that overlap it. */
function levels(spans: readonly [number, number][]): number[] {
  const order = spans.map((_, at) => at).sort((a, b) => length(spans[a]) - length(spans[b]) || a - b);
  const placed: { left: number; right: number; level: number }[] = [];
  const found = new Array<number>(spans.length).fill(0);
  for (const at of order) {
    const [left, right] = spans[at] ?? [0, 0];
    const over = placed.filter((other) => other.left < right && left < other.right);
    const inside = over.filter((other) => left <= other.left && other.right <= right);
    const taken = new Set(over.map((other) => other.level));
    let level = 1 + Math.max(0, ...inside.map((other) => other.level));
    while (taken.has(level)) level += 1;
    placed.push({ left, right, level });
    found[at] = level;
  }
  return found;
}

function length(span: readonly [number, number] | undefined): number {
  return span ? span[1] - span[0] : 0;
}

function mirrored(given: Row): Row {
  const { width } = given;
  return {
    ...given,
    places: new Map([...given.places].map(([word, x]) => [word, width - x])),
    bows: given.bows.map((bow) => ({
      ...bow,
      head: width - bow.head,
      dependent: width - bow.dependent,
    })),
    roots: given.roots.map(({ arc, x }) => ({ arc, x: width - x })),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
