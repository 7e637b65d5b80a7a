/**
 * Idempotency records: the reply to a POST with an Idempotency-Key is saved for a day, so that a retry returns it
 * again. Only MACs of the key and of the request are stored, because the request may contain a secret value.
 * SOURCE: docs/decisions.md, "Idempotency"; docs/formats.md.
 */
import { invalidRequest } from '../engine/errors.ts';
import type { Grammar, ValueOf } from '../engine/field.ts';
import { text, time } from '../engine/kinds.ts';
import { stored } from '../engine/resource.ts';
import * as grammar from './grammars.ts';
import type { Brand } from './names.ts';

export type IdempotencyKey = Brand<string, 'IdempotencyKey'>;
/** Base64 of a MAC over the caller's name and the key. */
export type IdempotencyId = Brand<string, 'IdempotencyId'>;

const MAX_REPLY_LENGTH = 4 * 1024 * 1024;
const MAX_REPLY_LEVELS = 64;

/** JSON that a program can walk through without a deep recursion. */
const REPLY: Grammar<string> = {
  pattern: /^/,
  minLength: 1,
  maxLength: MAX_REPLY_LENGTH,
  parse(text, field) {
    if (text.length <= MAX_REPLY_LENGTH && isShallowJson(text)) return text;
    throw invalidRequest(
      field,
      `must be JSON of at most ${MAX_REPLY_LENGTH} characters and ${MAX_REPLY_LEVELS} levels`,
    );
  },
};

function isShallowJson(text: string): boolean {
  const isWithin = (value: unknown, levels: number): boolean =>
    typeof value !== 'object' ||
    value === null ||
    (levels > 0 && Object.values(value).every((member) => isWithin(member, levels - 1)));
  try {
    return isWithin(JSON.parse(text), MAX_REPLY_LEVELS);
  } catch {
    return false;
  }
}

const FIELDS = {
  id: text(grammar.hash<IdempotencyId>()),
  /** The caller's id, because another agent may have the name by now. */
  agentId: text(grammar.holderId),
  /** A MAC over the whole request. */
  requestMac: text(grammar.hash()),
  /** The operation's reply. */
  reply: text(REPLY),
  expiresAt: time(),
};
export const REPLY_ROWS = stored({ table: 'idempotency_records', key: 'id', fields: FIELDS });
export type IdempotencyRecord = ValueOf<typeof FIELDS>;
export type Idempotency = Pick<IdempotencyRecord, 'id' | 'requestMac'>;

/** Counted from the reply. */
export const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

/**
 * A reply that JSON restores unchanged: plain data at every level. A type with methods, such as `Secret`, is not
 * assignable, so that no reply with a value can be saved.
 */
export type JsonSerializable<R> = R extends string | number | boolean | null
  ? R
  : R extends undefined | ((...values: never[]) => unknown)
    ? never
    : { readonly [Field in keyof R]: JsonSerializable<R[Field]> };

export const IDEMPOTENCY_KEY_FIELD = 'Idempotency-Key';
/** Visible ASCII. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

/** @throws INVALID_REQUEST */
export function parseIdempotencyKey(given: string): IdempotencyKey {
  if (!IDEMPOTENCY_KEY.test(given))
    throw invalidRequest(IDEMPOTENCY_KEY_FIELD, 'must be 1 to 255 visible ASCII characters');
  return given as IdempotencyKey;
}
