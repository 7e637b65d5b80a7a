/** What the rules and the store may know of an Idempotency-Key and of the request that came with it: MACs, and nothing else. */
import type { Authentication } from '../core/agent.ts';
import type { Idempotency, IdempotencyId, IdempotencyKey } from '../core/idempotency.ts';
import { ADMIN } from '../core/names.ts';
import { rowMac } from '../crypto/row-mac.ts';
import type { Vault } from './vault.ts';

/** A request as texts in a fixed order: two are the same just where all of them are. */
export type RequestTexts = readonly string[];

/**
 * WHY MACs: a plain hash of a body that holds a short value would tell the value to whoever reads the database and tries all. The
 * id is bound to the caller's name, so that nobody can come upon another's; whose the name is, the turn looks.
 */
export function toIdempotency(
  { keys }: Pick<Vault, 'keys'>,
  authentication: Authentication,
  key: IdempotencyKey,
  request: RequestTexts,
): Idempotency {
  const name = authentication.kind === 'session' ? authentication.agentName : ADMIN;
  return {
    id: rowMac(keys.row, 'idempotency', [name, key]) as IdempotencyId,
    requestMac: rowMac(keys.row, 'request', request),
  };
}
