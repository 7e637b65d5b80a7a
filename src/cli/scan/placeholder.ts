/** Tells values that look like secrets from placeholders: example values in documents, templates and tests. */

/** Whole values that are placeholders, and marks that no secret contains. */
const PLACEHOLDERS = [
  /^(?:password|passwd|pass|pwd|secret|token|test|user|admin|null|none|true|false|undefined|todo)$/i,
  /x{4,}|\*{3,}|\.{3}|…/i,
  // The keys in the AWS documentation end with this.
  /EXAMPLE(?:KEY)?$/,
  // Encrypted by sops, Ansible, Jasypt or Vault's transit engine.
  /^(?:ENC[[(]|!vault|\$ANSIBLE_VAULT|vault:v\d)/,
];
/**
 * Filled in by a program: `${NAME}`, `{{ name }}`, `<name>`, `%NAME%`, `$(command)`, `$NAME` as a whole or in capitals
 * as a word. WHY not any `$` before a letter: passwords contain one.
 */
const TEMPLATES =
  /\$[({]|\{\{|<[^>]{0,64}>|^%.*%$|^\$[A-Za-z_]\w*$|(?<![A-Za-z0-9])\$[A-Z][A-Z0-9_]{2,}(?![A-Za-z0-9])|^process\.env|^os\.environ/;
/** Words that make a value a placeholder when the rest does not look random. */
const WORDS = /example|placeholder|change[-_ ]?me|dummy|sample|redacted|your(?=[-_ A-Z])|insert|replace(?=[-_ A-Z])/gi;
/** Only this much of a value is examined. */
const MAX_PLACEHOLDER_LENGTH = 256;
const MIN_SECRET_LENGTH = 3;
const MIN_DISTINCT = 5;
const LONG = 16;

export function isPlaceholder(value: string): boolean {
  const text = value.slice(0, MAX_PLACEHOLDER_LENGTH);
  if (text.length < MIN_SECRET_LENGTH) return true;
  if (TEMPLATES.test(text) || PLACEHOLDERS.some((pattern) => pattern.test(text))) return true;
  if (text.length >= LONG && new Set(text).size < MIN_DISTINCT) return true;
  const rest = text.replace(WORDS, ' ');
  return rest !== text && tokensOf(rest).every((token) => token.length >= 3 || /^\d+$/.test(token));
}

/** Splits at separators and capitals. A single word between separators is omitted, however short. */
function tokensOf(text: string): string[] {
  return text
    .split(/[^A-Za-z0-9]+/)
    .filter((part) => !/^(?:[A-Za-z]?[a-z]*|[A-Z]*)$/.test(part))
    .flatMap((part) => part.match(/[A-Z]?[a-z]+|[A-Z]+|\d+/g) ?? []);
}

/** Shannon entropy, in bits per character. */
function entropyOf(text: string): number {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / text.length) * Math.log2(count / text.length);
  return bits;
}

const MIN_RANDOM_LENGTH = 12;
const MIN_BITS = 3;
/** A part of a compound name: `my-secret-name-1`, `auth.token.v2`. */
const WORD = /^(?:[A-Za-z]?[a-z]{1,16}|[A-Z]{2,16}|v?\d{1,3})$/;
/** A value without digits must have this length to count as random. */
const MIN_LETTERS_LENGTH = 16;
/** Words in camel case have five letters or more on average; random text changes case every two or three letters. */
const MAX_LETTERS_PER_TOKEN = 4;

/** Whether a text looks machine-generated. */
function isRandom(text: string): boolean {
  if (text.length < MIN_RANDOM_LENGTH || !/[A-Za-z]/.test(text)) return false;
  if (text.split(/[-_./:@]/).every((part) => WORD.test(part))) return false;
  if (!/\d/.test(text) && !hasRandomCase(text)) return false;
  return entropyOf(text) >= MIN_BITS;
}

function hasRandomCase(text: string): boolean {
  const tokens = text.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  return text.length >= MIN_LETTERS_LENGTH && text.length / tokens.length <= MAX_LETTERS_PER_TOKEN;
}

const MIN_PASSWORD_LENGTH = 8;
const CLASSES = [/[a-z]/, /[A-Z]/, /[^A-Za-z0-9]/];

/**
 * Whether a value that is assigned to a secret name looks like a secret: random, or a password that follows the usual
 * rules.
 */
export function looksSecret(text: string): boolean {
  if (isRandom(text)) return true;
  if (text.length < MIN_PASSWORD_LENGTH || !/\d/.test(text)) return false;
  return (
    CLASSES.every((characters) => characters.test(text)) && !text.split(/[-_./:@]/).every((part) => WORD.test(part))
  );
}
