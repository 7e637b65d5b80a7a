/**
 * Quotes untrusted text for a model: a description may contain instructions. The text is shortened, and characters are
 * escaped that are invisible, move a cursor or could end a message.
 */

/**
 * Control, format and unassigned characters, lone surrogates and line ends; and characters that close a quote or open a
 * tag.
 */
const UNSAFE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}"\\<>`]/gu;

/** Returns at most `maxLength` characters in double quotes, with unsafe ones as `\u{…}`. */
export function quote(text: string, maxLength = 200): string {
  const characters = Array.from(text);
  const kept = characters.length > maxLength ? `${characters.slice(0, maxLength - 1).join('')}…` : text;
  return `"${kept.replaceAll(UNSAFE_CHARACTERS, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`)}"`;
}
