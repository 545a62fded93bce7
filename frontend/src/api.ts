/** Client of the server's API, version 1. */

export interface Run {
  name: string;
  model: "pt" | "transformer";
  task: "mlm" | "tagging" | "ner" | "classification" | "cogs" | "parsing";
  step: "iteration" | "layer";
  steps: number;
  channels: number;
  /** The channel of a parser's trees, or whose arcs have labels. */
  channel: number | null;
  labels: number | null;
  has_root: boolean;
  can_clamp: boolean;
  example: string;
}

export interface HeadClamp {
  word: number;
  head: number | "root";
  channel: number | "all";
}

export interface LabelClamp {
  word: number;
  label: number;
}

export interface Clamps {
  heads: HeadClamp[];
  labels: LabelClamp[];
}

export interface Label {
  label: number;
  p: number;
}

/** The most probable label of the arc from a head, and P(label | head). */
export interface LabelledArc {
  head: number | "root";
  label: string;
  p: number;
}

/** The task's answer; each task has some of these fields. */
export interface Answer {
  masks?: Record<string, number>[];
  tags?: string[] | Record<string, unknown[]>;
  entities?: { kind: string; text: string }[];
  label?: string;
  probabilities?: Record<string, number>;
  logical_form?: string;
  /** Of the predicted tree: places of words, −1 for ROOT. */
  heads?: number[];
}

export interface Result {
  words: string[];
  unknown: number[];
  /** steps × channels × dependents × heads */
  heads: number[][][][];
  /** steps × channels × dependents */
  root: number[][][] | null;
  /** steps × words × the strongest labels */
  labels: Label[][][] | null;
  /** steps × words × heads of some probability, in the run's `channel` */
  arc_labels: LabelledArc[][][] | null;
  free_energy: number[] | null;
  answer: Answer;
}

export interface ChannelMeaning {
  number: number;
  distance: number;
  /** The share of heads before their words. */
  before: number;
  /** Links that are more frequent than by chance: dependent, head, lift. */
  links: [string, string, number][];
}

export interface LabelMeaning {
  label: number;
  /** The share of words whose strongest label it is. */
  strongest: number;
  /** The gold tags of those words, with their shares. */
  tags: [string, number][];
}

export interface Meanings {
  /** The text that it was measured on. */
  text: string;
  labels: LabelMeaning[] | null;
  channels: ChannelMeaning[];
}

export type Channel = number | "average" | "all";

export interface Drawing {
  run: string;
  sentence: string[];
  kind: "arcs" | "iterations";
  channel: Channel;
  iteration?: number;
  threshold: number;
  format: "svg" | "html";
  clamps: Clamps;
}

/** An error whose message is shown to the user. */
export class ApiError extends Error {}

export async function fetchRuns(): Promise<Run[]> {
  const { runs } = await fetchJson<{ runs: Run[] }>("runs");
  return runs;
}

export async function infer(
  run: string,
  words: string[],
  clamps: Clamps,
  signal: AbortSignal,
): Promise<Result> {
  const body = { run, sentences: [words], clamps };
  const { results } = await fetchJson<{ results: Result[] }>("infer", { body, signal });
  const [result] = results;
  if (!result) throw new ApiError("The server gave no answer for this sentence.");
  return result;
}

export async function fetchOwners(run: string, label: number): Promise<string[]> {
  const found = await fetchJson<{ words: string[] }>(`runs/${encodeURIComponent(run)}/labels/${label}`);
  return found.words;
}

export function fetchMeanings(run: string): Promise<Meanings> {
  return fetchJson(`runs/${encodeURIComponent(run)}/meanings`);
}

export async function draw(drawing: Drawing): Promise<Blob> {
  return (await response("draw", { body: drawing })).blob();
}

interface Options {
  body?: object;
  signal?: AbortSignal;
}

async function fetchJson<T>(path: string, options: Options = {}): Promise<T> {
  return (await (await response(path, options)).json()) as T;
}

async function response(path: string, { body, signal }: Options): Promise<Response> {
  const sent: RequestInit = signal ? { signal } : {};
  if (body) {
    sent.method = "POST";
    sent.headers = { "Content-Type": "application/json" };
    sent.body = JSON.stringify(body);
  }
  let answer: Response;
  try {
    answer = await fetch(`api/v1/${path}`, sent);
  } catch (reason) {
    if (signal?.aborted) throw reason;
    throw new ApiError("The explorer’s server does not answer. Is it still running?");
  }
  if (!answer.ok) throw new ApiError(await errorOf(answer));
  return answer;
}

async function errorOf(answer: Response): Promise<string> {
  const body: unknown = await answer.json().catch(() => null);
  if (body && typeof body === "object" && "error" in body) return String(body.error);
  return `The server answered ${answer.status} ${answer.statusText}.`;
}
