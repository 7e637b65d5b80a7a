/** How a field of a record is written where there is one line for it. */

/** As the service answers it, with its own field names. */
export type Printable = { readonly [field: string]: unknown };

/** A text without quotes; nothing for null; what is no scalar as JSON. */
export function toText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** For people: a list as words, and what is null as a dash. */
export function toCell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  const isWords = Array.isArray(value) && value.every((item) => typeof item !== 'object');
  return escapeControls(isWords ? value.join(', ') : toText(value));
}

const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** What moves a cursor, paints, or ends a line is shown, and does nothing; half a character is shown as which half it is. */
export function escapeControls(text: string): string {
  return text.replaceAll(UNSAFE, (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`);
}

/** The same for text in JSON, which stays that JSON; line ends are its layout. */
export function harmlessJson(json: string): string {
  return json.replaceAll(UNSAFE, (character) => (character === '\n' ? character : toJsonEscapes(character)));
}

function toJsonEscapes(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
