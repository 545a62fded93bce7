/** The task's answer: a note below each word, and a line of text. */

import type { Result, Run } from "./api";
import { element, percent } from "./dom";
import { MASK, escaped } from "./words";

export type Guess = readonly [word: string, probability: number];

/** The predicted words for each mask, by decreasing probability. */
export function guessesOf(result: Result): Map<number, Guess[]> {
  const hidden = result.words.flatMap((word, at) => (word === MASK ? [at] : []));
  const found = new Map<number, Guess[]>();
  result.answer.masks?.forEach((guesses, at) => {
    const word = hidden[at];
    // JavaScript objects list keys like "1999" first, in any case
    const ordered = Object.entries(guesses).sort(([, p], [, q]) => q - p);
    if (word !== undefined) found.set(word, ordered);
  });
  return found;
}

/** The tag of each word, if the task predicts one. */
export function tagsOf(result: Result): string[] | null {
  const { heads, tags } = result.answer;
  if (Array.isArray(tags)) return tags.map(String);
  // a parser may predict several columns
  return (heads && tags && Object.values(tags)[0]?.map(String)) ?? null;
}

/** `words` are those that the user typed, without masks. */
export function answerLine(result: Result, run: Run, words: readonly string[]): Node[] {
  const { answer } = result;
  if (run.task === "mlm") return guessLines(guessesOf(result), words);
  if (answer.logical_form !== undefined) {
    return [element("code", {}, escaped(answer.logical_form))];
  }
  if (answer.probabilities) {
    const ordered = Object.entries(answer.probabilities).sort(([, p], [, q]) => q - p);
    return [shares("Class", ordered)];
  }
  if (answer.entities) {
    const named = answer.entities.map(({ kind, text }) => `${escaped(text)} (${kind})`);
    return [line(named.length ? `Names: ${named.join(", ")}` : "It finds no names.")];
  }
  if (answer.heads) return [line(rootLine(answer.heads, words))];
  return [line("Its tags are below the words.")];
}

function rootLine(heads: readonly number[], words: readonly string[]): string {
  const roots = heads.flatMap((head, at) => (head < 0 ? [`“${escaped(words[at] ?? "")}”`] : []));
  const [what, verb] = roots.length === 1 ? ["root", "is"] : ["roots", "are"];
  return `The ${what} of the predicted tree ${verb} ${roots.join(", ")}.`;
}

function guessLines(guesses: Map<number, Guess[]>, words: readonly string[]): Node[] {
  if (!guesses.size) return [line("Click a word to hide it: the model guesses what it was.")];
  return [...guesses].map(([at, guess]) =>
    shares(`For “${escaped(words[at] ?? MASK)}” it guesses`, guess),
  );
}

function line(text: string): HTMLElement {
  return element("p", {}, text);
}

function shares(title: string, entries: readonly Guess[]): HTMLElement {
  const items = entries.map(([name, p], at) =>
    element(
      "li",
      { class: at ? "" : "best" },
      element("bdi", {}, escaped(name)),
      " ",
      element("span", { class: "share" }, percent(p)),
    ),
  );
  return element(
    "div",
    { class: "shares" },
    element("span", {}, title, " "),
    element("ol", {}, ...items),
  );
}
