/**
 * Tokens of use leases in places where they do not belong. A token counts as issued if its MAC is valid, so that texts
 * that only look like tokens never add to the audit log. SOURCE: docs/decisions.md, "Misuse of tokens".
 */

import { toApiError } from '../../core/denials.ts';
import type { AuthContext } from '../../core/identity.ts';
import { ADMIN } from '../../core/names.ts';
import type { Context } from '../../core/operation.ts';
import { hashToken, isUseTokenOf } from '../../crypto/tokens.ts';
import { readLeaseOfToken } from '../../store/vault-metadata.ts';
import type { Lease } from '../leases/lease.ts';
import { authenticate, type Vault } from '../vault.ts';
import {
  type ForwardedPlace,
  type ForwardedRequest,
  forwardedDenial,
  recordMisuse,
  type WrongPlace,
} from './misuse-operations.ts';
import { type FoundToken, isAdminToken, isUseToken } from './token-form.ts';

export type RequestOrigin = Pick<Context, 'requestId' | 'remoteAddr'>;

interface Incident<P extends WrongPlace> {
  /** Null if the token alone identifies the caller: then the agent that holds the lease. */
  readonly auth: AuthContext | null;
  readonly place: P;
  readonly origin: RequestOrigin;
}

/** A request to a route that takes no tokens of use leases; read only for a token that was issued. */
export interface RouteCall extends RequestOrigin {
  readonly method: string;
  /** Its pattern, not its path. */
  readonly route: string | null;
}

/** Each costs a read of the store. The request is rejected however many it has. */
const MAX_CHECKED = 16;

/** The lease whose token the server issued, even if it has ended; null for any other text. */
export async function findIssuedLease({ store, keys }: Vault, token: string): Promise<Lease | null> {
  const lease = await store.run(readLeaseOfToken(hashToken(token)), 'urgent');
  return lease !== null && isUseTokenOf(keys.row, token, [lease.agentId, lease.path]) ? lease : null;
}

/** @throws ACCESS_DENIED, after it was recorded */
export async function rejectMisuse(vault: Vault, lease: Lease, incident: Incident<ForwardedPlace>): Promise<never> {
  await record(vault, lease, incident);
  throw toApiError(forwardedDenial(incident.place));
}

async function record({ ledger }: Vault, lease: Lease, { auth, place, origin }: Incident<WrongPlace>): Promise<void> {
  const agent = ledger.memory.control.agentById(lease.agentId);
  const { tokenHash } = lease;
  const holder: AuthContext | null =
    agent === null || tokenHash === null ? null : { kind: 'lease', tokenHash, agentName: agent.name };
  const agentName = auth === null ? (agent?.name ?? lease.agentName) : nameOf(auth);
  await ledger.submit(recordMisuse({ lease, agentName, auth: auth ?? holder, place, context: origin }));
}

/**
 * As `authenticate`, for a route that takes no tokens of use leases. One that was issued is recorded, and answered as
 * an unknown token.
 */
export function authenticateCaller(
  vault: Vault,
  token: string,
  call: () => RouteCall,
): AuthContext | (() => Promise<AuthContext>) {
  const found = authenticate(vault, token);
  if (typeof found !== 'function') return found;
  if (isAdminToken(token)) throw toApiError({ code: 'admin_token_unknown' });
  if (!isUseToken(token)) return found;
  return async () => {
    await recordStray(vault, token, call());
    throw toApiError({ code: 'token_unknown' });
  };
}

/** Records a token of a use lease, if it was issued, at a route that does not accept it. */
export async function recordStray(vault: Vault, token: string, call: RouteCall): Promise<void> {
  const lease = await findIssuedLease(vault, token);
  if (lease === null) return;
  const { method, route, ...origin } = call;
  await record(vault, lease, { auth: null, origin, place: { kind: 'route', method, route } });
}

/**
 * Records the first of the tokens that was issued for a use lease. Resolves if none was.
 * @throws ACCESS_DENIED, after it was recorded
 */
export async function checkForwarded(
  vault: Vault,
  context: Context,
  tokens: readonly FoundToken[],
  forwarded: ForwardedRequest,
): Promise<void> {
  for (const { token, place: kind } of tokens.filter((each) => isUseToken(each.token)).slice(0, MAX_CHECKED)) {
    const lease = await findIssuedLease(vault, token);
    const place: ForwardedPlace = { kind, ...forwarded };
    if (lease !== null) await rejectMisuse(vault, lease, { auth: context.auth, place, origin: context });
  }
}

const nameOf = (auth: AuthContext) => (auth.kind === 'admin' ? ADMIN : auth.agentName);
