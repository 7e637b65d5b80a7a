/** Sessions of agents and operators. SOURCE: docs/api.md, "Logging in". */
import type { AgentId, TokenHash } from '../../core/names.ts';

export interface Session {
  readonly tokenHash: TokenHash;
  /** Id of an agent or of an operator. */
  readonly agentId: AgentId;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The time up to which renewals extend an operator's session; absent for an agent's. */
  readonly endsAt?: number | null;
}
