/** What the task says about the sentence: a note below each word, and a line in words. */

import type { Result, Run } from "./api";
import { element, percent } from "./dom";
import { MASK, shown } from "./words";

export type Guess = readonly [word: string, probability: number];

/** The guesses for each hidden word, likeliest first. */
export function guessesOf(result: Result): Map<number, Guess[]> {
  const hidden = result.words.flatMap((word, at) => (word === MASK ? [at] : []));
  const found = new Map<number, Guess[]>();
  result.answer.masks?.forEach((guesses, at) => {
    const word = hidden[at];
    // an object puts words like "1999" first, whatever their order was
    const ordered = Object.entries(guesses).sort(([, p], [, q]) => q - p);
    if (word !== undefined) found.set(word, ordered);
  });
  return found;
}

/** The tag of each word, where the task has one for each. */
export function tagsOf(result: Result): string[] | null {
  const { tags } = result.answer;
  return Array.isArray(tags) ? tags.map(String) : null;
}

/** `words` are those that the person typed. */
export function answerLine(result: Result, run: Run, words: readonly string[]): Node[] {
  const { answer } = result;
  if (run.task === "mlm") return guessLines(guessesOf(result), words);
  if (answer.logical_form !== undefined) {
    return [element("code", {}, shown(answer.logical_form))];
  }
  if (answer.probabilities) {
    const ordered = Object.entries(answer.probabilities).sort(([, p], [, q]) => q - p);
    return [shares("Class", ordered)];
  }
  if (answer.entities) {
    const named = answer.entities.map(({ kind, text }) => `${shown(text)} (${kind})`);
    return [line(named.length ? `Names: ${named.join(", ")}` : "It finds no names.")];
  }
  return [line("Its tags are below the words.")];
}

function guessLines(guesses: Map<number, Guess[]>, words: readonly string[]): Node[] {
  if (!guesses.size) return [line("Click a word to hide it: the model guesses what it was.")];
  return [...guesses].map(([at, guess]) =>
    shares(`For “${shown(words[at] ?? MASK)}” it guesses`, guess),
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
      element("bdi", {}, shown(name)),
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
