/** The words of the picture: notes, states, and names for screen readers. */

import { guessesOf, tagsOf } from "./answer";
import type { Clamps } from "./api";
import { percent } from "./dom";
import type { WordButton } from "./picture";
import type { Inferred } from "./inference";
import { MASK, escaped } from "./words";

export function wordButtons(
  { words, masks, result }: Inferred,
  clamps: Clamps,
  picked: number | null,
  hides: boolean,
): WordButton[] {
  const guesses = guessesOf(result);
  const tags = tagsOf(result);
  const held = new Set([...clamps.heads, ...clamps.labels].map((clamp) => clamp.word));
  const unknown = new Set(result.unknown);
  return words.map((text, at) => {
    const hidden = masks.has(at) || text === MASK;
    const guess = guesses.get(at)?.[0];
    const note = guess ? `${escaped(guess[0])} ${percent(guess[1])}` : (tags?.[at] ?? "");
    const states = {
      hidden,
      unknown: unknown.has(at) && !hidden,
      held: held.has(at),
      picked: picked === at,
    };
    const active = Object.entries(states).flatMap(([name, holds]) => (holds ? [name] : []));
    return {
      text,
      note,
      classes: active.join(" "),
      pressed: hides ? hidden : picked === at,
      name: [escaped(text), ...active, ...(note ? [note] : [])].join(", "),
    };
  });
}
