/**
 * What makes a retry safe: a POST that its caller gave an Idempotency-Key, and the reply to it, which is kept for a day.
 * The key and the request, which may hold a secret value, are known here by their MACs alone, and are never kept.
 * SOURCE: docs/decisions.md, "Idempotency"; drawn in docs/formats.md.
 */
import type { Brand } from './brand.ts';
import { type ApiError, invalidRequest } from './errors.ts';
import type { AgentId } from './names.ts';

/** What a caller calls a request of theirs, so that it can be sent again. */
export type IdempotencyKey = Brand<string, 'IdempotencyKey'>;
/** Base64 of a MAC over the caller's name and the key. */
export type IdempotencyId = Brand<string, 'IdempotencyId'>;

/** A request with a key, as the rules know it. */
export interface Idempotency {
  readonly id: IdempotencyId;
  /** Base64 of a MAC over all that was asked for. */
  readonly requestMac: string;
}

/** What the caller of a request that succeeded was told, to be told again. */
export interface IdempotencyRecord extends Idempotency {
  /** Whose it is: the caller's name may be another's by now. */
  readonly agentId: AgentId;
  /** JSON text of what the operation replied. */
  readonly reply: string;
  readonly expiresAt: number;
}

/** From the reply on. */
export const IDEMPOTENCY_TTL_MS = 24 * 3600 * 1000;

/**
 * A reply that JSON gives back as it was: data all through. A `Secret` has methods and is none, nor is anything that holds one,
 * so that what must not be kept can't be.
 */
export type JsonSerializable<R> = R extends string | number | boolean | null
  ? R
  : R extends undefined | ((...values: never[]) => unknown)
    ? never
    : { readonly [Field in keyof R]: JsonSerializable<R[Field]> };

/** Names the header in what a caller is told. */
const FIELD = 'Idempotency-Key';
/** Visible ASCII. */
export const IDEMPOTENCY_KEY = /^[!-~]{1,255}$/;

/** @throws INVALID_REQUEST */
export function parseIdempotencyKey(text: string): IdempotencyKey {
  if (!IDEMPOTENCY_KEY.test(text)) throw invalidRequest(FIELD, 'must be 1 to 255 visible characters of ASCII');
  return text as IdempotencyKey;
}

/** For a key that comes back with another request. */
export function idempotencyKeyReused(): ApiError {
  return invalidRequest(FIELD, 'was given with another request within 24 hours; a new request needs a new one');
}
