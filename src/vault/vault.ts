/** The vault: the parts that the operations of the interface share, and who a request's token belongs to. */
import { type Authentication, identifySession, type Session } from '../core/agent.ts';
import { ApiError } from '../core/errors.ts';
import type { TokenHash } from '../core/names.ts';
import { timingSafeEqualText, type VaultKeys } from '../crypto/keys.ts';
import { hashToken } from '../crypto/tokens.ts';
import type { Clock } from '../ledger/clock.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { findSession } from '../ledger/vault-state.ts';
import type { Store } from '../store/store.ts';
import type { AgentBudgets } from './agent-budgets.ts';
import type { KeyRecovery } from './key-recovery.ts';
import type { LoginThrottle } from './login-throttle.ts';
import type { Verifier } from './verification/verifier.ts';

export interface Vault {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly keys: VaultKeys;
  readonly clock: Clock;
  readonly agentKeys: KeyRecovery;
  readonly limiter: LoginThrottle;
  readonly budgets: AgentBudgets;
  readonly verifier: Verifier;
  /** The administrator's token, hashed. */
  readonly adminTokenHash: TokenHash;
}

/**
 * Whose token this is, before anything of the request is read further; the turn looks again. A function that queries the store
 * where session or agent is not in memory. @throws UNAUTHENTICATED, SESSION_EXPIRED; UNAVAILABLE where more of theirs waits than
 * there is room for
 */
export function authenticate(vault: Vault, token: string): Authentication | (() => Promise<Authentication>) {
  const { ledger, store, keys, adminTokenHash } = vault;
  const tokenHash = hashToken(token);
  const cached = ledger.memory.sessions.get(tokenHash);
  // WHY the agent too: the session may be cached before this node has heard of the agent, which another node registered.
  if (cached !== null && hasAgent(vault, cached)) return toAuthentication(vault, tokenHash, cached);
  if (timingSafeEqualText(tokenHash, adminTokenHash)) return { kind: 'admin' };
  return async () => {
    const session = await findSession(ledger.memory, store, keys, tokenHash);
    // Its agent may have been registered on another node just now.
    if (session !== null && !hasAgent(vault, session)) await ledger.refresh();
    return toAuthentication(vault, tokenHash, session);
  };
}

function hasAgent({ ledger }: Vault, { agentId }: Session): boolean {
  return ledger.memory.control.agentById(agentId) !== null;
}

function toAuthentication({ ledger, clock }: Vault, tokenHash: TokenHash, session: Session | null): Authentication {
  const agent = session === null ? null : ledger.memory.control.agentById(session.agentId);
  const caller = identifySession(session, agent, clock.now());
  if (caller instanceof ApiError) throw caller;
  ledger.assertCapacity(caller.agent.name);
  return { kind: 'session', tokenHash, agentName: caller.agent.name };
}
