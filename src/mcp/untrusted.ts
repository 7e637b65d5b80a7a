/**
 * Makes untrusted text visible to a model, because it may contain instructions. A description is quoted and shortened.
 * In longer text only those characters are escaped that are invisible or move a cursor.
 */

/**
 * Control, format and unassigned characters, lone surrogates and line ends; and characters that close a quote or open a
 * tag.
 */
const UNSAFE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}"\\<>`]/gu;

/** The same without tabs and line ends, and without the joiners that scripts and emoji need. */
const INVISIBLE_CHARACTERS = /[\p{Zl}\p{Zp}]|(?![\t\n\r\u200c\u200d])\p{C}/gu;

const escaped = (character: string): string => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;

/** Returns the text with invisible characters as `\u{…}`. */
export function escapeInvisible(text: string): string {
  return text.replaceAll(INVISIBLE_CHARACTERS, escaped);
}

/** Returns at most `maxLength` characters in double quotes, with unsafe ones as `\u{…}`. */
export function quote(text: string, maxLength = 200): string {
  const characters = Array.from(text);
  const kept = characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : text;
  return `"${kept.replaceAll(UNSAFE_CHARACTERS, escaped)}"`;
}
