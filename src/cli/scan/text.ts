/**
 * Finds secrets in text: strings of a known key format, and random-looking values that are assigned to a secret name.
 */
import type { Secret } from '../../core/secret.ts';
import { isSecretField } from '../../masking/secret-names.ts';
import { findSecrets } from '../../masking/secret-patterns.ts';
import { isPlaceholder, looksSecret } from './placeholder.ts';

export interface Finding {
  /** Relative to the scanned directory, with forward slashes. Untrusted text: escape it before printing. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly rule: string;
  /** The name that it is assigned to; null when only its format was matched. */
  readonly name: string | null;
  /** Its well-known prefix, as in `ghp_…`, four characters at most; `…` when it has none. */
  readonly hint: string;
}

/** The whole value of an assignment in an env file, which a reference can replace. */
export interface MovableFinding extends Finding {
  readonly name: string;
  readonly value: Secret;
}

export function isMovable(finding: Finding): finding is MovableFinding {
  return 'value' in finding;
}

/** A line that contains this is skipped. */
export const ALLOW_COMMENT = 'leasehold:allow';

interface Match {
  readonly from: number;
  readonly to: number;
  readonly rule: string;
  readonly name: string | null;
  readonly hint: string;
}

/** In the order of lines. */
export function findInText(text: string, file: string): readonly Finding[] {
  const matches = [...matchesOf(text), ...assignedIn(text, file)];
  const found: Finding[] = [];
  let [end, line, at] = [0, 1, 0];
  for (const match of matches.sort((one, other) => one.from - other.from || other.to - one.to)) {
    // Overlapping matches, such as a JWT in a URL with a password, are one secret.
    if (match.from < end) continue;
    end = match.to;
    for (; at < match.from; at++) if (text.charCodeAt(at) === NEWLINE) line += 1;
    if (!lineAround(text, match.from).includes(ALLOW_COMMENT)) {
      found.push({ file, line, rule: match.rule, name: match.name, hint: match.hint });
    }
  }
  return found;
}

/** The first match of the pattern table that is not a placeholder; null when none matches. */
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
const MAX_LINE_LENGTH = 1000;

function lineAround(text: string, at: number): string {
  const before = text.slice(Math.max(0, at - MAX_LINE_LENGTH), at);
  const after = text.slice(at, at + MAX_LINE_LENGTH);
  const end = after.indexOf('\n');
  return before.slice(before.lastIndexOf('\n') + 1) + (end === -1 ? after : after.slice(0, end));
}

/** Files in which a value needs no quotes. In source code an unquoted word is a variable. */
const PLAIN =
  /\.(?:env|ini|cfg|conf|config|properties|toml|ya?ml|tfvars|sh|bash|zsh|npmrc|pypirc|netrc)$|(?:^|\/)(?:\.npmrc|\.pypirc|\.netrc|Dockerfile|credentials)$|(?:^|\/)\.env\b/i;
const MAX_NAME_LENGTH = 80;
const MAX_VALUE_LENGTH = 256;
/**
 * Before an operator: `name =`, `"name":`, `name string =`, `name ?=`, `name .=`. A comma counts after a quoted name:
 * `set("name", "value")`.
 */
const NAME_BEFORE = /([A-Za-z_][\w.-]*)["'`]?\]?(?:\s{1,8}string)?\s{0,8}[?.:|]{0,3}$/;
const QUOTED_NAME_BEFORE = /["'`]([A-Za-z_][\w.-]*)["'`]\s{0,8}$/;
/** After the operator, optionally with a type: `name: string = "value"`. */
const QUOTED_AFTER = /^(?:\s{0,8}[A-Za-z]{1,20}\s{0,8}=|[=>:]{0,2})\s{0,8}(["'`])([^\s"'`\\]+)(?:\1|\\n)/;
/** `<dbPassword>value</…`. */
const ELEMENT_BEFORE = /<([A-Za-z][\w.-]*)$/;
const ELEMENT_AFTER = /^\s{0,16}([^\s<]+)\s{0,16}<\//;
const PLAIN_AFTER = /^[=:]{0,2}\s{0,8}([^\s"'`\\#;,(){}[\]]+)\s*(?:$|["'\r\n#;,]|\\[nr])/;
/** Names that are too common to mark a secret, such as the key of a map. */
const COMMON_NAMES = /^(?:keys?|auth|cookie)$/i;

/**
 * Examines a bounded number of characters around each operator. WHY not one pattern over the text: it would backtrack
 * over overlapping names.
 */
function* assignedIn(text: string, file: string): Generator<Match> {
  const isPlain = PLAIN.test(file);
  for (const { 0: operator, index } of text.matchAll(/[=:,>]/g)) {
    const name = BEFORE[operator]?.exec(text.slice(Math.max(0, index - MAX_NAME_LENGTH), index))?.[1];
    if (name === undefined || COMMON_NAMES.test(name) || !isSecretField(name)) continue;
    const after = text.slice(index + 1, index + 1 + MAX_VALUE_LENGTH);
    const value = valueIn(after, operator, isPlain);
    if (value === undefined) continue;
    const from = index + 1 + after.indexOf(value);
    const range = { from, to: from + value.length };
    const match = matchKeyPattern(value);
    if (match !== null) yield { ...range, rule: match.rule, name: null, hint: match.hint };
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

function valueIn(after: string, operator: string, isPlain: boolean): string | undefined {
  if (operator === '>') return ELEMENT_AFTER.exec(after)?.[1];
  return QUOTED_AFTER.exec(after)?.[2] ?? (isPlain && operator !== ',' ? PLAIN_AFTER.exec(after)?.[1] : undefined);
}

/** A URL, a file or a reference, which is not a secret itself. A URL with a password has a separate rule. */
export function isAddress(value: string): boolean {
  return /^(?:https?:\/\/|\.{0,2}\/|~\/|leasehold:)/i.test(value);
}
