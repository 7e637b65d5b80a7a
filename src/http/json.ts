/**
 * Strict JSON bodies: UTF-8 that is whole, no key twice, no `__proto__` or `constructor`, few levels deep.
 * SOURCE: security, "How others were broken"; RFC 8259, section 4 (names should be unique).
 */
import { Fault } from '../core/fault.ts';

/** The interface's bodies have two levels. */
const MAX_DEPTH = 8;
const FORBIDDEN_KEYS: ReadonlySet<unknown> = new Set(['__proto__', 'constructor', 'prototype']);
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function refuse(rule: string): never {
  throw new Fault('INVALID_REQUEST', `body: ${rule}`);
}

/** @throws INVALID_REQUEST naming the rule, never what was sent. */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return refuse('must be UTF-8');
  }
  checkKeys(text);
  try {
    return JSON.parse(text);
  } catch {
    return refuse('must be JSON');
  }
}

/** Walks over the tokens. What is no JSON passes here and fails in the parser. */
function checkKeys(text: string): void {
  const open: Set<unknown>[] = [];
  let at = 0;
  while (at < text.length) {
    const character = text[at];
    if (character === '"') {
      const end = endOfString(text, at);
      if (isKey(text, end)) checkKey(text.slice(at, end), open.at(-1));
      at = end;
      continue;
    }
    if (character === '{' || character === '[') {
      open.push(new Set());
      if (open.length > MAX_DEPTH) refuse(`must be at most ${MAX_DEPTH} levels deep`);
    }
    if (character === '}' || character === ']') open.pop();
    at += 1;
  }
}

/** The position behind the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

function isKey(text: string, end: number): boolean {
  let at = end;
  while (text[at] === ' ' || text[at] === '\t' || text[at] === '\n' || text[at] === '\r') at += 1;
  return text[at] === ':';
}

/** Keys are compared as they read, whatever escapes they are written with. */
function checkKey(token: string, keys: Set<unknown> | undefined): void {
  let key: unknown;
  try {
    key = JSON.parse(token);
  } catch {
    refuse('must be JSON');
  }
  if (FORBIDDEN_KEYS.has(key)) refuse('has a key that is not allowed');
  if (keys?.has(key)) refuse('has a key twice');
  keys?.add(key);
}
