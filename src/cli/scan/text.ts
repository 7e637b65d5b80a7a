/** Key-shaped strings of a text, and what looks random and is assigned to a name that says that it is a secret. */
import type { Secret } from '../../core/secret.ts';
import { isSecretField } from '../../masking/secret-names.ts';
import { findSecrets } from '../../masking/secret-patterns.ts';
import { isPlaceholder, looksSecret } from './placeholder.ts';

export interface Finding {
  /** From the folder that is scanned, with forward slashes. May hold anything: to be shown escaped. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly rule: string;
  /** The name that it is assigned to; null where it is told by its form alone. */
  readonly name: string | null;
  /** Its well-known beginning, as in `ghp_…`; `…` where it has none. */
  readonly hint: string;
}

/** One that stands in an env file by itself, so that a reference can take its place. */
export interface MovableFinding extends Finding {
  readonly name: string;
  readonly value: Secret;
}

export function isMovable(finding: Finding): finding is MovableFinding {
  return 'value' in finding;
}

/** A line that says so is passed over. */
export const ALLOW_COMMENT = 'leasehold:allow';

interface Match {
  readonly from: number;
  readonly to: number;
  readonly rule: string;
  readonly name: string | null;
  readonly hint: string;
}

/** In order of their lines. */
export function findInText(text: string, file: string): readonly Finding[] {
  const matches = [...matchesOf(text), ...assignedIn(text, file)];
  const found: Finding[] = [];
  let [end, line, at] = [0, 1, 0];
  for (const match of matches.sort((one, other) => one.from - other.from || other.to - one.to)) {
    // A JWT in a URL with a password is one secret.
    if (match.from < end) continue;
    end = match.to;
    for (; at < match.from; at++) if (text.charCodeAt(at) === NEWLINE) line += 1;
    if (!lineAround(text, match.from).includes(ALLOW_COMMENT)) {
      found.push({ file, line, rule: match.rule, name: match.name, hint: match.hint });
    }
  }
  return found;
}

/** The first match of the table that is not a placeholder, with its hint; null where the text has none. */
export function matchKeyPattern(text: string): { readonly rule: string; readonly hint: string } | null {
  return matchesOf(text).next().value ?? null;
}

function* matchesOf(text: string): Generator<Match, undefined> {
  for (const { pattern, from, to, secret } of findSecrets(text)) {
    if (isPlaceholder(secret) || (pattern.isCommonForm && !looksSecret(secret))) continue;
    yield { from, to, rule: pattern.name, name: null, hint: `${text.slice(from, from + pattern.shown)}…` };
  }
}

const NEWLINE = 10;
const LONGEST_LINE = 1000;

function lineAround(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - LONGEST_LINE), at);
  const after = text.slice(at, at + LONGEST_LINE);
  const end = after.indexOf('\n');
  return before.slice(before.lastIndexOf('\n') + 1) + (end === -1 ? after : after.slice(0, end));
}

/** Kinds of files where a value needs no quotes. In a program a word without quotes is a variable. */
const PLAIN =
  /\.(?:env|ini|cfg|conf|config|properties|toml|ya?ml|tfvars|sh|bash|zsh|npmrc|pypirc|netrc)$|(?:^|\/)(?:\.npmrc|\.pypirc|\.netrc|Dockerfile|credentials)$|(?:^|\/)\.env\b/i;
const LONGEST_NAME = 80;
const LONGEST_VALUE = 256;
/** Before a sign: `name =`, `"name":`, `name string =`, `name ?=`, `name .=`. A comma counts behind a quoted name, as in `set("name", "value")`. */
const NAME_BEFORE = /([A-Za-z_][\w.-]*)["'`]?\]?(?:\s{1,8}string)?\s{0,8}[?.:|]{0,3}$/;
const QUOTED_NAME_BEFORE = /["'`]([A-Za-z_][\w.-]*)["'`]\s{0,8}$/;
/** Behind it, also with a type: `name: string = "value"`. */
const QUOTED_AFTER = /^(?:\s{0,8}[A-Za-z]{1,20}\s{0,8}=|[=>:]{0,2})\s{0,8}(["'`])([^\s"'`\\]+)(?:\1|\\n)/;
/** `<dbPassword>value</…`. */
const ELEMENT_BEFORE = /<([A-Za-z][\w.-]*)$/;
const ELEMENT_AFTER = /^\s{0,16}([^\s<]+)\s{0,16}<\//;
const PLAIN_AFTER = /^[=:]{0,2}\s{0,8}([^\s"'`\\#;,(){}[\]]+)\s*(?:$|["'\r\n#;,]|\\[nr])/;
/** Names that are too common for any value to be a secret: of the key of a map, for example. */
const COMMON_NAMES = /^(?:keys?|auth|cookie)$/i;

/** WHY not a pattern over all of it: names and values of one text could overlap in too many ways. From each sign a few characters are seen. */
function* assignedIn(text: string, file: string): Generator<Match> {
  const isPlain = PLAIN.test(file);
  for (const { 0: sign, index } of text.matchAll(/[=:,>]/g)) {
    const name = BEFORE[sign]?.exec(text.slice(Math.max(0, index - LONGEST_NAME), index))?.[1];
    if (name === undefined || COMMON_NAMES.test(name) || !isSecretField(name)) continue;
    const after = text.slice(index + 1, index + 1 + LONGEST_VALUE);
    const value = valueIn(after, sign, isPlain);
    if (value === undefined) continue;
    const from = index + 1 + after.indexOf(value);
    const range = { from, to: from + value.length };
    const shape = matchKeyPattern(value);
    if (shape !== null) yield { ...range, rule: shape.rule, name: null, hint: shape.hint };
    else if (!isPlaceholder(value) && looksSecret(value) && !isAddress(value)) {
      yield { ...range, rule: 'secret-assigned', name, hint: '…' };
    }
  }
}

const BEFORE: Readonly<Record<string, RegExp>> = {
  '=': NAME_BEFORE,
  ':': NAME_BEFORE,
  ',': QUOTED_NAME_BEFORE,
  '>': ELEMENT_BEFORE,
};

function valueIn(after: string, sign: string, isPlain: boolean): string | undefined {
  if (sign === '>') return ELEMENT_AFTER.exec(after)?.[1];
  return QUOTED_AFTER.exec(after)?.[2] ?? (isPlain && sign !== ',' ? PLAIN_AFTER.exec(after)?.[1] : undefined);
}

/** A link or a file, where what is secret is behind it. One with a password has a rule of its own. */
export function isAddress(value: string): boolean {
  return /^(?:https?:\/\/|\.{0,2}\/|~\/|leasehold:)/i.test(value);
}
