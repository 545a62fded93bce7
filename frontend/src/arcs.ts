/** Arcs over words as SVG, with one layout for all steps, so that words and arcs do not move. */

import { svg } from "./dom";
import { type Arc, type Bow, layOut, type Measure, type Row } from "./arcLayout";
import type { StrongArc } from "./strength";
import { pixels } from "./textWidth";
import { cut, escaped, isRightToLeft, runRightToLeft } from "./words";

export interface DrawnWord {
  text: string;
  /** A line below the word: a tag, or a predicted word. */
  note: string;
  classes: string;
}

export interface Size {
  font: number;
  /** Font of labels of arcs; 0 where only their titles have them. */
  label: number;
  level: number;
  tallest: number;
  measure: Omit<Measure, "limit">;
}

export const FULL: Size = {
  font: 17,
  label: 12,
  level: 24,
  tallest: 440,
  measure: { gap: 18, port: 9, root: 36, margin: 72, spread: 48 },
};
export const NARROW: Size = {
  font: 15,
  label: 10.5,
  level: 20,
  tallest: 320,
  measure: { gap: 8, port: 6, root: 32, margin: 44, spread: 24 },
};
export const SMALL: Size = {
  font: 11,
  label: 0,
  level: 13,
  tallest: 150,
  measure: { gap: 8, port: 4, root: 24, margin: 34, spread: 8 },
};

export interface DrawnArc {
  group: SVGGElement;
  title: SVGTitleElement;
  label: SVGTextElement;
  dependent: number;
  head: number | null;
}

export interface Drawing {
  node: SVGSVGElement;
  /** An arc between two rows has a part in each. */
  arcs: DrawnArc[];
  words: SVGGElement[];
  rows: number;
  show(step: number): void;
}

const FOOT = 12;
const CURVE = 9;
const BETWEEN = 14;
const LONGEST_LABEL = 16;

/** `steps` has the arcs of each step; `show` makes those of one step visible. */
export function drawArcs(
  words: readonly DrawnWord[],
  steps: readonly StrongArc[][],
  size: Size,
  limit: number,
): Drawing {
  const texts = words.map((word) => escaped(word.text));
  const widths = words.map((word, at) =>
    Math.max(pixels(texts[at] ?? "", size.font) + 6, pixels(word.note, 0.75 * size.font)),
  );
  const measure = { ...size.measure, limit };
  const rows = layOut(widths, union(steps, size), measure, runRightToLeft(texts));
  const noteLine = words.some((word) => word.note) ? 1.15 * size.font : 0;
  const drawing: Drawing = {
    node: svg("svg", { class: "arcs" }),
    arcs: [],
    words: [],
    rows: rows.length,
    show: (step) => drawing.arcs.forEach((arc) => showArc(arc, texts, byKey[step], size)),
  };
  const byKey = steps.map((arcs) => new Map(arcs.map((arc) => [key(arc), arc])));
  let y = 0;
  for (const row of rows) {
    const made = drawRow(row, words, texts, widths, size, noteLine, drawing);
    made.group.setAttribute("transform", `translate(0 ${y})`);
    drawing.node.append(made.group);
    y += made.height + BETWEEN;
  }
  const width = Math.ceil(rows[0]?.width ?? 0);
  const height = Math.ceil(Math.max(0, y - BETWEEN));
  for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) {
    drawing.node.setAttribute(name, String(value));
  }
  return drawing;
}

/** The arcs of all steps, with room for the widest label that they have in one of them. */
function union(steps: readonly StrongArc[][], size: Size): Arc[] {
  const found = new Map<string, Arc>();
  for (const arc of steps.flat()) {
    const { dependent, head } = arc;
    const mark = pixels(labelText(arc, size), size.label);
    found.set(key(arc), { dependent, head, mark: Math.max(mark, found.get(key(arc))?.mark ?? 0) });
  }
  return [...found.values()];
}

function labelText({ label }: StrongArc, size: Size): string {
  return label && size.label ? cut(escaped(label.label), LONGEST_LABEL) : "";
}

function key(arc: { dependent: number; head: number | null }): string {
  return `${arc.dependent} ${arc.head}`;
}

function showArc(
  arc: DrawnArc,
  words: readonly string[],
  shown: ReadonlyMap<string, StrongArc> | undefined,
  size: Size,
): void {
  const found = shown?.get(key(arc));
  for (const node of [arc.group, arc.label]) node.classList.toggle("absent", !found);
  if (!found) return;
  const { probability, label } = found;
  arc.group.style.setProperty("--strength", probability.toFixed(4));
  const head = arc.head === null ? "ROOT" : words[arc.head];
  const labelled = label ? `  ${escaped(label.label)} ${label.p.toFixed(2)}` : "";
  arc.title.textContent = `${words[arc.dependent]} ← ${head}  ${probability.toFixed(2)}${labelled}`;
  arc.label.textContent = labelText(found, size);
}

function drawRow(
  row: Row,
  words: readonly DrawnWord[],
  texts: readonly string[],
  widths: readonly number[],
  size: Size,
  noteLine: number,
  drawing: Drawing,
): { group: SVGGElement; height: number } {
  const step = Math.min(size.level, size.tallest / Math.max(row.levels, 1));
  const belowSign = row.roots.some(({ arc }) => arc.mark) ? size.label : 0;
  const top = 6 + (row.roots.length ? size.font + belowSign : 0);
  const ground = top + row.levels * step + FOOT;
  const group = svg("g");
  const before = drawing.arcs.length;
  for (const bow of row.bows) {
    const y = ground - FOOT - bow.level * step + step / 2;
    drawing.arcs.push(drawBow(group, texts, bow, y, ground, step, size));
  }
  for (const { arc, x } of row.roots) {
    drawing.arcs.push(drawRoot(group, arc, x, top, belowSign, ground, size));
  }
  group.append(...drawing.arcs.slice(before).map((arc) => arc.label)); // above all lines
  for (const [at, x] of row.places) {
    const look = words[at];
    if (!look) continue;
    const word = drawWord(look, texts[at] ?? "", widths[at] ?? 0, size, noteLine);
    word.setAttribute("transform", `translate(${x.toFixed(1)} ${ground.toFixed(1)})`);
    drawing.words[at] = word;
    group.append(word);
  }
  return { group, height: ground + 1.65 * size.font + noteLine + 3 };
}

function drawWord(
  look: DrawnWord,
  text: string,
  width: number,
  size: Size,
  noteLine: number,
): SVGGElement {
  const frame = { x: -width / 2 - 3, y: 1, width: width + 6, height: 1.5 * size.font + noteLine, rx: 5 };
  const word = svg("g", { class: `word ${look.classes}` }, svg("rect", frame));
  const direction = isRightToLeft(text) ? "rtl" : "ltr";
  word.append(svg("text", { y: 1.15 * size.font, "font-size": size.font, direction }, text));
  if (look.classes.includes("unknown")) {
    const half = pixels(text, size.font) / 2;
    word.append(svg("path", { class: "wave", d: `M${-half} ${1.4 * size.font} H${half}` }));
  }
  if (look.note) {
    const y = 1.2 * size.font + noteLine;
    word.append(svg("text", { class: "note", y, "font-size": 0.75 * size.font }, look.note));
  }
  return word;
}

function drawBow(
  row: SVGGElement,
  words: readonly string[],
  bow: Bow,
  y: number,
  ground: number,
  step: number,
  size: Size,
): DrawnArc {
  const { head, dependent } = bow.arc;
  const curve = Math.min(CURVE, Math.abs(bow.head - bow.dependent) / 2, 0.8 * step);
  const side = bow.dependent > bow.head ? 1 : -1;
  const path =
    bow.elsewhere === head
      ? [`M${bow.head} ${y}`]
      : [`M${bow.head} ${ground} V${y + curve} q0 ${-curve} ${side * curve} ${-curve}`];
  if (bow.elsewhere === dependent) {
    path.push(`H${bow.dependent}`);
  } else {
    path.push(`H${bow.dependent - side * curve} q${side * curve} 0 ${side * curve} ${curve}`);
    path.push(`V${ground - 5}`);
  }
  const arc = startArc(row, "arc", path.join(" "), bow.arc);
  place(arc.label, middleOf(bow), y - 4, size);
  if (bow.elsewhere !== dependent) arc.group.append(tip(bow.dependent, ground, size));
  if (bow.elsewhere !== null) {
    const [edge, inner] = edgeAndInnerEnd(bow);
    const outwards = edge > inner ? 1 : -1;
    const beside = { x: edge + 4 * outwards, y: y + 4, "font-size": 0.7 * size.font };
    const room = Math.floor(size.measure.margin / (0.4 * size.font));
    const name = cut(words[bow.elsewhere] ?? "", room);
    const side = outwards > 0 ? "right" : "left";
    arc.group.append(svg("text", { class: `elsewhere ${side}`, ...beside }, name));
  }
  return arc;
}

/** x of the label: beside the name at the edge of a row. */
function middleOf(bow: Bow): number {
  const middle = (bow.head + bow.dependent) / 2;
  if (bow.elsewhere === null) return middle;
  const [edge, inner] = edgeAndInnerEnd(bow);
  const half = bow.arc.mark / 2;
  return edge < inner ? Math.max(middle, edge + half) : Math.min(middle, edge - half);
}

function edgeAndInnerEnd(bow: Bow): [number, number] {
  return bow.elsewhere === bow.arc.head ? [bow.head, bow.dependent] : [bow.dependent, bow.head];
}

function place(label: SVGTextElement, x: number, y: number, size: Size): void {
  for (const [name, value] of Object.entries({ x, y, "font-size": size.label })) {
    label.setAttribute(name, String(value));
  }
}

function drawRoot(
  row: SVGGElement,
  arc: Arc,
  x: number,
  top: number,
  belowSign: number,
  ground: number,
  size: Size,
): DrawnArc {
  const drawn = startArc(row, "arc from-root", `M${x} ${top - 2} V${ground - 5}`, arc);
  place(drawn.label, x, top - 5, size);
  const sign = svg("text", { x, y: top - belowSign - 6, "font-size": 0.65 * size.font }, "ROOT");
  drawn.group.append(tip(x, ground, size), sign);
  return drawn;
}

function startArc(
  row: SVGGElement,
  classes: string,
  d: string,
  { dependent, head }: Arc,
): DrawnArc {
  const title = svg("title");
  const group = svg("g", { class: classes, "aria-hidden": "true" }, title, svg("path", { class: "line", d }));
  row.append(group);
  const label = svg("text", { class: "arc-label", "aria-hidden": "true" });
  return { group, title, label, dependent, head };
}

function tip(x: number, ground: number, size: Size): SVGPathElement {
  const half = size.font > 12 ? 3.6 : 2.4;
  return svg("path", { class: "tip", d: `M${x} ${ground} l${-half} -${2.2 * half} h${2 * half} z` });
}
