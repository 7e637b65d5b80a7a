/**
 * Text that somebody else wrote, on its way to a model: a description may hold orders to it. Kept short, in quotes, and without
 * anything that moves a cursor, hides itself or looks like the end of a message.
 */

/** Controls, formats, lone surrogates, what is unassigned, line ends; and what would close a quote or open a tag. */
const UNSAFE_CHARACTERS = /[\p{C}\p{Zl}\p{Zp}"\\<>`]/gu;

/** At most `longest` characters in double quotes; what speaks stands as `\u{…}`. */
export function quote(text: string, longest = 200): string {
  const characters = Array.from(text);
  const kept = characters.length > longest ? `${characters.slice(0, longest - 1).join('')}…` : text;
  return `"${kept.replaceAll(UNSAFE_CHARACTERS, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`)}"`;
}
