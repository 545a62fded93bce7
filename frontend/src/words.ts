/** How words look: split, made harmless, measured, and told from right-to-left scripts. */

export const MASK = "<mask>";

export function split(text: string): string[] {
  // also at the separators that Python's split knows and \s does not
  return text.split(/[\s\x1c-\x1f\x85]+/u).filter((word) => word !== "");
}

const STEERING = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const JOINERS = "\u200c\u200d"; // letters of Persian, of India and of emoji are joined by them

/** The word with what would steer the page, like an override of direction, written out. */
export function shown(word: string): string {
  return word.replace(STEERING, (character) =>
    JOINERS.includes(character) ? character : writtenOut(character.codePointAt(0) ?? 0),
  );
}

function writtenOut(code: number): string {
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

export function cut(word: string, length: number): string {
  const characters = [...word];
  return characters.length <= length ? word : `${characters.slice(0, length - 1).join("")}…`;
}

const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** Whether the first letter is of a script that runs from right to left. */
export function isRightToLeft(word: string): boolean {
  const first = /\p{L}/u.exec(word);
  return first !== null && RIGHT_TO_LEFT.test(first[0]);
}

/** Whether most words that have letters do. */
export function runRightToLeft(words: readonly string[]): boolean {
  const lettered = words.filter((word) => /\p{L}/u.test(word));
  return 2 * lettered.filter(isRightToLeft).length > lettered.length;
}

export const FONT = "Helvetica, Arial, sans-serif";

const measuring = document.createElement("canvas").getContext("2d");

export function pixels(text: string, size: number): number {
  if (!measuring) return text.length * size * 0.6;
  measuring.font = `${size}px ${FONT}`;
  return measuring.measureText(text).width;
}
