/**
 * Idempotency records: the reply to a POST with an Idempotency-Key is saved for a day, so that a retry returns it
 * again. Only MACs of the key and of the request are stored, because the request may contain a secret value.
 * SOURCE: docs/decisions.md, "Idempotency"; docs/formats.md.
 */
import { invalidRequest } from '../engine/errors.ts';
import type { AgentId, Brand } from './names.ts';

export type IdempotencyKey = Brand<string, 'IdempotencyKey'>;
/** Base64 of a MAC over the caller's name and the key. */
export type IdempotencyId = Brand<string, 'IdempotencyId'>;

export interface Idempotency {
  readonly id: IdempotencyId;
  /** Base64 of a MAC over the whole request. */
  readonly requestMac: string;
}

export interface IdempotencyRecord extends Idempotency {
  /** The caller's id, because another agent may have the name by now. */
  readonly agentId: AgentId;
  /** The operation's reply as JSON text. */
  readonly reply: string;
  readonly expiresAt: number;
}

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
export function parseIdempotencyKey(text: string): IdempotencyKey {
  if (!IDEMPOTENCY_KEY.test(text))
    throw invalidRequest(IDEMPOTENCY_KEY_FIELD, 'must be 1 to 255 visible ASCII characters');
  return text as IdempotencyKey;
}
