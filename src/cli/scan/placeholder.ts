/** What stands where a secret would, and is none: in examples, templates and documents. */

const WORDS =
  /example|placeholder|change[-_ ]?me|dummy|sample|redacted|your[-_ ]|insert|replace[-_ ]|x{4,}|\*{3,}|\.{3}|…|^(?:password|passwd|pass|pwd|secret|token|test|user|admin|null|none|true|false|undefined|todo)$/i;
/** Filled in by a program: `${NAME}`, `{{ name }}`, `<name>`, `%NAME%`, `$(command)`. */
const TEMPLATES = /\$[A-Za-z_({]|\{\{|<[^>]{0,64}>|^%.*%$|^process\.env|^os\.environ/;
const FEWEST_DISTINCT = 5;
const LONG = 16;

export function isPlaceholder(text: string): boolean {
  if (WORDS.test(text) || TEMPLATES.test(text)) return true;
  return text.length >= LONG && new Set(text).size < FEWEST_DISTINCT;
}

/** Shannon's, in bits a character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

const SHORTEST = 12;
const LEAST_BITS = 3;
/** Words put together, as in names of things: `my-secret-name-1`, `auth.token.v2`. */
const WORD = /^(?:[A-Za-z]?[a-z]{1,16}|[A-Z]{2,16}|v?\d{1,3})$/;

/** Whether a text looks as if a machine had made it up. */
export function isRandom(text: string): boolean {
  if (text.length < SHORTEST || !/\d/.test(text) || !/[A-Za-z]/.test(text)) return false;
  if (text.split(/[-_./:@]/).every((part) => WORD.test(part))) return false;
  return entropyOf(text) >= LEAST_BITS;
}
