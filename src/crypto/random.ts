/**
 * Random ids and keys. Row ids are ordered by time (UUIDv7), so that rows are appended to a table's end.
 * SOURCE: RFC 9562.
 */
import { randomBytes, randomUUIDv7 } from 'node:crypto';

export const newId = (): string => randomUUIDv7();

/**
 * Returns a generator of request ids: eight random characters per process, then a counter. They are never the caller's.
 */
export function requestIds(): () => string {
  const prefix = randomBytes(5).toString('hex').slice(0, 8);
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}

/** The root key of a new vault. */
export function newRootKey(): Uint8Array {
  return randomBytes(32);
}

/** 16 bytes as base64url. */
export const newNonce = (): string => randomBytes(16).toString('base64url');
