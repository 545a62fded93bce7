/** The state as the fragment of a URL, which browsers do not send to the server. */

import type { Channel, Clamps, Run } from "./api";
import { freshPanel, type PanelState, type State, usualThreshold } from "./state";
import { split } from "./words";

export function toFragment(state: State): string {
  const fields = new URLSearchParams({ text: state.text });
  if (state.masks.size) fields.set("hide", [...state.masks].sort((a, b) => a - b).join(" "));
  fields.set("from", String(state.threshold));
  state.panels.forEach((panel, at) => {
    const suffix = at ? String(at + 1) : "";
    fields.set(`run${suffix}`, panel.run);
    fields.set(`channel${suffix}`, String(panel.channel));
    if (panel.step !== null) fields.set(`step${suffix}`, String(panel.step));
    const { heads, labels } = panel.clamps;
    const headList = heads.map(({ word, head, channel }) => `${word}:${head}:${channel}`);
    if (heads.length) fields.set(`heads${suffix}`, headList.join(" "));
    if (labels.length) {
      fields.set(`labels${suffix}`, labels.map(({ word, label }) => `${word}:${label}`).join(" "));
    }
  });
  return fields.toString();
}

/** The state of a link, as far as it fits the open runs, and notes on what does not. */
export function fromFragment(fragment: string, runs: Run[]): { state: State; notes: string[] } {
  const fields = new URLSearchParams(fragment);
  const notes: string[] = [];
  const [first] = runs;
  if (!first) throw new Error("there are no runs");
  const chosen = (name: string | null): Run | null => {
    const found = runs.find((run) => run.name === name) ?? null;
    if (name !== null && !found) notes.push(`The link names a run that is not open here: ${name}.`);
    return found;
  };
  const left = chosen(fields.get("run")) ?? first;
  const right = chosen(fields.get("run2"));
  const text = fields.get("text") ?? left.example;
  const words = split(text).length;
  const panels = [panelOf(fields, "", left, words)];
  if (right) panels.push(panelOf(fields, "2", right, words));
  const masks = numbers(fields.get("hide")).filter((at) => within(at, words));
  const given = Number(fields.get("from") ?? Number.NaN);
  const threshold = given >= 0.05 && given <= 0.95 ? given : usualThreshold(left.channels);
  return { state: { text, masks: new Set(masks), threshold, panels }, notes };
}

function panelOf(fields: URLSearchParams, suffix: string, run: Run, words: number): PanelState {
  const step = whole(fields.get(`step${suffix}`) ?? "");
  const fresh = freshPanel(run);
  return {
    ...fresh,
    channel: channelOf(fields.get(`channel${suffix}`), run) ?? fresh.channel,
    step: step !== null && step >= 1 && step < run.steps ? step : null,
    clamps: run.can_clamp ? clampsOf(fields, suffix, run, words) : { heads: [], labels: [] },
  };
}

function channelOf(given: string | null, run: Run): Channel | null {
  if (given === "all" || given === "average") return given;
  const number = whole(given ?? "");
  return number !== null && within(number, run.channels) ? number : null;
}

function clampsOf(fields: URLSearchParams, suffix: string, run: Run, words: number): Clamps {
  const clamps: Clamps = { heads: [], labels: [] };
  for (const [first = "", second = "", third = ""] of lists(fields.get(`heads${suffix}`))) {
    const word = whole(first);
    const head = second === "root" && run.has_root ? "root" : whole(second);
    const channel = third === "all" ? "all" : whole(third);
    if (word === null || head === null || channel === null) continue;
    if (!within(word, words) || word === head) continue;
    if (head !== "root" && !within(head, words)) continue;
    if (channel !== "all" && !within(channel, run.channels)) continue;
    clamps.heads.push({ word, head, channel });
  }
  for (const [first = "", second = ""] of lists(fields.get(`labels${suffix}`))) {
    const word = whole(first);
    const label = whole(second);
    if (word === null || label === null) continue;
    if (within(word, words) && within(label, run.labels ?? 0)) clamps.labels.push({ word, label });
  }
  return clamps;
}

function lists(given: string | null): string[][] {
  return given ? given.split(" ").map((entry) => entry.split(":")) : [];
}

function numbers(given: string | null): number[] {
  return given ? given.split(" ").flatMap((entry) => whole(entry) ?? []) : [];
}

function whole(given: string): number | null {
  return /^\d{1,6}$/.test(given) ? Number(given) : null;
}

function within(number: number, count: number): boolean {
  return number < count;
}
