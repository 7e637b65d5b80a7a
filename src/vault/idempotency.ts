/**
 * What the rules and the store may know of an Idempotency-Key and of the request that came with it: MACs, and nothing
 * else.
 */
import type { Authentication } from '../core/agent.ts';
import type { Idempotency, IdempotencyId, IdempotencyKey } from '../core/idempotency.ts';
import { ADMIN } from '../core/names.ts';
import { rowMac } from '../crypto/row-mac.ts';
import type { Vault } from './vault.ts';

/** A request as strings in a fixed order. Two requests are equal if and only if all strings are. */
export type RequestTexts = readonly string[];

/**
 * WHY MACs: with a plain hash of a body that contains a short value, a reader of the database could find the value by
 * trial. The id covers the caller's name, so that callers cannot use each other's keys; the batch compares the agent's
 * id too.
 */
export function toIdempotency(
  { keys }: Pick<Vault, 'keys'>,
  authentication: Authentication,
  key: IdempotencyKey,
  request: RequestTexts,
): Idempotency {
  const name = authentication.kind === 'admin' ? ADMIN : authentication.agentName;
  return {
    id: rowMac(keys.row, 'idempotency', [name, key]) as IdempotencyId,
    requestMac: rowMac(keys.row, 'request', request),
  };
}
