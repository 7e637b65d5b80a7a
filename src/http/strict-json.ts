/**
 * Strict JSON bodies: valid UTF-8, no duplicate keys, no `__proto__` or `constructor`, and limits of size. A first pass
 * checks these before the body is parsed, so that a rejected body costs one scan of its text. SOURCE: RFC 8259, section
 * 4 (names should be unique).
 */
import { ApiError } from '../engine/errors.ts';

// The largest body of the HTTP API, a policy with 256 patterns, has two levels, three containers, five keys and about
// 540 tokens.
const MAX_DEPTH = 8;
const MAX_KEYS = 64;
const MAX_CONTAINERS = 64;
const MAX_TOKENS = 2048;
/** Characters of a key or a number, including escapes. */
const MAX_WORD_LENGTH = 512;
/**
 * Characters of a string, an escape counting as one: twice the limit of a value, so that a value over its limit gets
 * that error.
 */
const MAX_STRING_LENGTH = 512 * 1024;
const FORBIDDEN_KEYS: ReadonlySet<unknown> = new Set(['__proto__', 'constructor', 'prototype']);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

function reject(rule: string): never {
  throw new ApiError('INVALID_REQUEST', `body: ${rule}`);
}

/** @throws INVALID_REQUEST naming the rule, never the input. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return reject('must be UTF-8');
  }
  checkStructure(text);
  try {
    return JSON.parse(text);
  } catch {
    return reject('must be JSON');
  }
}

/** Scans every token once. Invalid JSON may pass here and then fails in the parser. */
function checkStructure(text: string): void {
  const open: Set<unknown>[] = [];
  let containers = 0;
  let tokens = 0;
  for (let at = endOfSpace(text, 0); at < text.length; at = endOfSpace(text, at)) {
    tokens += 1;
    if (tokens > MAX_TOKENS) reject(`must contain at most ${MAX_TOKENS} tokens`);
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) {
      const end = endOfString(text, at);
      const next = endOfSpace(text, end);
      if (text.charCodeAt(next) === COLON) checkKey(text.slice(at, end), open.at(-1));
      at = next;
    } else if (!isPunctuation(unit)) {
      const end = endOfLiteral(text, at);
      if (end - at > MAX_WORD_LENGTH) reject(`must not contain a number over ${MAX_WORD_LENGTH} characters`);
      at = end;
    } else {
      if (unit === CLOSE_ARRAY || unit === CLOSE_OBJECT) open.pop();
      if (unit === OPEN_ARRAY || unit === OPEN_OBJECT) {
        containers += 1;
        open.push(new Set());
        if (open.length > MAX_DEPTH) reject(`must be at most ${MAX_DEPTH} levels deep`);
        if (containers > MAX_CONTAINERS) reject(`must contain at most ${MAX_CONTAINERS} objects and arrays`);
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

function endOfString(text: string, start: number): number {
  let at = start + 1;
  for (let length = 0; at < text.length; length += 1) {
    if (length > MAX_STRING_LENGTH) reject(`must not contain a string over ${MAX_STRING_LENGTH} characters`);
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) break;
    if (unit !== BACKSLASH) at += 1;
    else at += text.charCodeAt(at + 1) === LOWER_U ? 6 : 2;
  }
  return at + 1;
}

/** The position after a number, a literal, or other characters, which the parser rejects. */
function endOfLiteral(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && at - start <= MAX_WORD_LENGTH) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE || isSpace(unit) || isPunctuation(unit)) break;
    at += 1;
  }
  return at;
}

/** Compares decoded keys, so that escapes do not hide a duplicate. */
function checkKey(token: string, keys: Set<unknown> | undefined): void {
  if (token.length > MAX_WORD_LENGTH) reject(`must not contain a key over ${MAX_WORD_LENGTH} characters`);
  let key: unknown;
  try {
    key = JSON.parse(token);
  } catch {
    reject('must be JSON');
  }
  if (FORBIDDEN_KEYS.has(key)) reject('must not contain the keys __proto__, constructor and prototype');
  if (keys === undefined) return;
  if (keys.has(key)) reject('must not contain a key twice');
  keys.add(key);
  if (keys.size > MAX_KEYS) reject(`must contain at most ${MAX_KEYS} keys per object`);
}
