/** Words: split, control characters escaped, and the direction of writing. */

export const MASK = "<mask>";

export function split(text: string): string[] {
  // like Python's split, also at separators that \s does not include
  return text.split(/[\s\x1c-\x1f\x85]+/u).filter((word) => word !== "");
}

const CONTROLS = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu;
const JOINERS = "\u200c\u200d"; // between letters of Persian and of Indian scripts, and between emoji

/** The word with control and format characters escaped, as `escaped` in viz/words.py. */
export function escaped(word: string): string {
  return word.replace(CONTROLS, (character) =>
    JOINERS.includes(character) ? character : escapeOf(character.codePointAt(0) ?? 0),
  );
}

function escapeOf(code: number): string {
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

export function cut(word: string, length: number): string {
  const characters = [...word];
  return characters.length <= length ? word : `${characters.slice(0, length - 1).join("")}…`;
}

const RIGHT_TO_LEFT =
  /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}\p{Script=Adlam}\p{Script=Hanifi_Rohingya}\p{Script=Mandaic}\p{Script=Samaritan}]/u;

/** Whether the first letter is of a right-to-left script. */
export function isRightToLeft(word: string): boolean {
  const first = /\p{L}/u.exec(word);
  return first !== null && RIGHT_TO_LEFT.test(first[0]);
}

/** Whether most words with letters are right-to-left. */
export function runRightToLeft(words: readonly string[]): boolean {
  const lettered = words.filter((word) => /\p{L}/u.test(word));
  return 2 * lettered.filter(isRightToLeft).length > lettered.length;
}
