/** The vault: the parts that requests share, the authentication of a token, and the error for a failing store. */

import { toApiError } from '../core/denials.ts';
import { type AuthContext, identifySession } from '../core/identity.ts';
import type { TokenHash } from '../core/names.ts';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import { hashToken } from '../crypto/tokens.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { ApiError } from '../engine/errors.ts';
import type { AgentBudgets } from '../ledger/budgets.ts';
import type { Clock } from '../ledger/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { findSession } from '../ledger/vault-state.ts';
import { storeErrorOf } from '../store/errors.ts';
import type { Store } from '../store/port.ts';
import type { RetryingAgentKeys } from './agents/retrying-agent-keys.ts';
import type { ApprovalHolds } from './approvals/approval-holds.ts';
import type { Checkpoints } from './audit/checkpoints.ts';
import type { Verifier } from './audit/verification/verifier.ts';
import type { Reencryption } from './keys/reencryption.ts';
import type { BreakGlass } from './operators/break-glass.ts';
import type { Advisories } from './overview/advisories.ts';
import type { ScanTurns } from './paging.ts';
import type { OidcClient, SlotSecrets, VaultAccess } from './ports.ts';
import type { LoginThrottle } from './sessions/login-throttle.ts';
import type { Session } from './sessions/session.ts';
import type { Uses } from './use/uses.ts';

export interface VaultNode {
  /** Host name and process id. */
  readonly name: string;
  readonly version: string;
  readonly startedAt: number;
}

export interface OwnNode {
  readonly self: VaultNode;
  status(): string;
}

export interface Vault {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
  readonly agentKeys: RetryingAgentKeys;
  readonly loginThrottle: LoginThrottle;
  readonly breakGlass: BreakGlass;
  readonly budgets: AgentBudgets;
  readonly verifier: Verifier;
  readonly advisories: Advisories;
  readonly scanTurns: ScanTurns;
  readonly checkpoints: Checkpoints;
  readonly node: OwnNode;
  readonly uses: Uses;
  readonly approvals: ApprovalHolds;
  readonly slotSecrets: SlotSecrets;
  readonly access: VaultAccess;
  /** Null without a provider of OpenID Connect. */
  readonly oidc: OidcClient | null;
  readonly reencryption: Reencryption;
  readonly adminTokenHash: TokenHash;
}

/**
 * Authenticates a token before the rest of the request is read; the batch identifies the caller again. If the session
 * or its agent is not in memory, returns a function that queries the store. @throws UNAUTHENTICATED, SESSION_EXPIRED;
 * UNAVAILABLE if the queue has no capacity for the caller
 */
export function authenticate(vault: Vault, token: string): AuthContext | (() => Promise<AuthContext>) {
  const { ledger, store, keys, adminTokenHash } = vault;
  const tokenHash = hashToken(token);
  const cached = ledger.memory.sessions.get(tokenHash);
  // WHY the holder too: the session may be cached before this node knows the agent, which another node registered.
  if (cached !== null && hasHolder(vault, cached)) return toAuthContext(vault, tokenHash, cached);
  if (timingSafeEqualText(tokenHash, adminTokenHash)) return { kind: 'admin' };
  return async () => {
    const session = await findSession(ledger.memory, store, keys, tokenHash);
    // Another node may have just registered the agent.
    if (session !== null && !hasHolder(vault, session)) await ledger.refresh();
    return toAuthContext(vault, tokenHash, session);
  };
}

function hasHolder({ ledger }: Vault, { agentId }: Session): boolean {
  const { control } = ledger.memory;
  return control.agentById(agentId) !== null || control.operatorById(agentId) !== null;
}

function toAuthContext({ ledger, clock }: Vault, tokenHash: TokenHash, session: Session | null): AuthContext {
  const identity = identifySession(session, ledger.memory.control, clock.now());
  if ('code' in identity) throw toApiError(identity);
  const auth: AuthContext =
    identity.kind === 'operator'
      ? { kind: 'operator', tokenHash, agentName: identity.operator.name }
      : { kind: 'session', tokenHash, agentName: identity.agent.name };
  ledger.assertCapacity(auth);
  return auth;
}

/**
 * The caller's error for a failing store; null for any other error. WHY: the store's own message is for the operator
 * only.
 */
export function storageUnavailable(error: unknown): ApiError | null {
  if (storeErrorOf(error) === null) return null;
  return new ApiError('UNAVAILABLE', 'The storage is not available. Try again in a second.', 1);
}
