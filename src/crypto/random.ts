/** Fresh ids. Those of rows are ordered by time (UUIDv7), so that a table grows at its end. SOURCE: RFC 9562. */
import { randomBytes, randomUUIDv7 } from 'node:crypto';

export const newId = (): string => randomUUIDv7();

/** A maker of request ids: eight random characters for the process, then a counter. Short, and never the caller's own. */
export function requestIds(): () => string {
  const prefix = randomBytes(5).toString('hex').slice(0, 8);
  let count = 0;
  return () => `${prefix}-${(++count).toString(36)}`;
}

/** The root key of a new vault. */
export function newRootKey(): Uint8Array {
  return randomBytes(32);
}

/** A name for a file that exists only until it is renamed. */
