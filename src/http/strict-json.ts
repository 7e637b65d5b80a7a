/**
 * Strict JSON bodies: valid UTF-8, no duplicate keys, no `__proto__` or `constructor`, and bounds on what a body may hold,
 * which the first pass checks before anything is built of it: what a rejected body costs is one scan of its text.
 * SOURCE: security, "How others were broken"; RFC 8259, section 4 (names should be unique).
 */
import { ApiError } from '../core/errors.ts';

// The largest body of the interface, a policy with 256 patterns, has two levels, three containers, five keys and some 540 tokens.
const MAX_DEPTH = 8;
const MAX_KEYS = 64;
const MAX_CONTAINERS = 64;
const MAX_TOKENS = 2048;
/** Characters of a key or a number, as they are written. */
const MAX_WORD_LENGTH = 512;
/** Characters of a string, an escape counting as one: twice what a value may have, so that its own rule is named first. */
const MAX_STRING_LENGTH = 512 * 1024;
const FORBIDDEN_KEYS: ReadonlySet<unknown> = new Set(['__proto__', 'constructor', 'prototype']);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

function refuse(rule: string): never {
  throw new ApiError('INVALID_REQUEST', `body: ${rule}`);
}

/** @throws INVALID_REQUEST naming the rule, never what was sent. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return refuse('must be UTF-8');
  }
  checkStructure(text);
  try {
    return JSON.parse(text);
  } catch {
    return refuse('must be JSON');
  }
}

/** Scans the tokens, each once. Text that is not JSON may pass here and fails in the parser. */
function checkStructure(text: string): void {
  const open: Set<unknown>[] = [];
  let containers = 0;
  let tokens = 0;
  for (let at = endOfSpace(text, 0); at < text.length; at = endOfSpace(text, at)) {
    tokens += 1;
    if (tokens > MAX_TOKENS) refuse(`must have at most ${MAX_TOKENS} tokens`);
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at);
      const next = endOfSpace(text, end);
      if (text.charCodeAt(next) === COLON) checkKey(text.slice(at, end), open.at(-1));
      at = next;
    } else if (!isPunctuation(unit)) {
      const end = endOfLiteral(text, at);
      if (end - at > MAX_WORD_LENGTH) refuse(`must have no number over ${MAX_WORD_LENGTH} characters`);
      at = end;
    } else {
      if (unit === CLOSE_ARRAY || unit === CLOSE_OBJECT) open.pop();
      if (unit === OPEN_ARRAY || unit === OPEN_OBJECT) {
        containers += 1;
        open.push(new Set());
        if (open.length > MAX_DEPTH) refuse(`must be at most ${MAX_DEPTH} levels deep`);
        if (containers > MAX_CONTAINERS) refuse(`must have at most ${MAX_CONTAINERS} objects and arrays`);
      }
      at += 1;
    }
  }
}

function isSpace(unit: number): boolean {
  return unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

function isPunctuation(unit: number): boolean {
  if (unit === COMMA || unit === COLON || unit === OPEN_ARRAY) return true;
  return unit === CLOSE_ARRAY || unit === OPEN_OBJECT || unit === CLOSE_OBJECT;
}

function endOfSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && isSpace(text.charCodeAt(at))) at += 1;
  return at;
}

/** The position after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (let length = 0; at < text.length; length += 1) {
    if (length > MAX_STRING_LENGTH) refuse('has a string that is too long');
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) break;
    if (unit !== BACKSLASH) at += 1;
    else at += text.charCodeAt(at + 1) === LOWER_U ? 6 : 2;
  }
  return at + 1;
}

/** The position after a number, a word, or what is neither. */
function endOfLiteral(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && at - start <= MAX_WORD_LENGTH) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE || isSpace(unit) || isPunctuation(unit)) break;
    at += 1;
  }
  return at;
}

/** Compares keys as they are decoded, whatever escapes they are written with. */
function checkKey(token: string, keys: Set<unknown> | undefined): void {
  if (token.length > MAX_WORD_LENGTH) refuse(`must have no key over ${MAX_WORD_LENGTH} characters`);
  let key: unknown;
  try {
    key = JSON.parse(token);
  } catch {
    refuse('must be JSON');
  }
  if (FORBIDDEN_KEYS.has(key)) refuse('has a key that is not allowed');
  if (keys === undefined) return;
  if (keys.has(key)) refuse('has a key twice');
  keys.add(key);
  if (keys.size > MAX_KEYS) refuse(`must have at most ${MAX_KEYS} keys in an object`);
}
