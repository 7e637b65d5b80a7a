/** Agents: the programs that use credentials. SOURCE: docs/api.md, "Agents". */
import type { ActorName, AgentId, AgentName, PublicKey } from '../../core/names.ts';
import type { Operator } from '../operators/operator.ts';

export interface Agent {
  /** Immutable: an agent registered again under the same name gets a new id and inherits nothing. */
  readonly id: AgentId;
  readonly name: AgentName;
  readonly description: string;
  readonly publicKey: PublicKey;
  readonly registeredAt: number;
  /** Sessions that began at this time or earlier have ended; null if none was ended this way. */
  readonly sessionsEndedAt: number | null;
  /** The key before the last rotation, with which logins succeed until `formerKeyUntil`. */
  readonly formerPublicKey: PublicKey | null;
  readonly formerKeyUntil: number | null;
  /** Who registered it or gave it a key. */
  readonly registeredBy: readonly ActorName[];
}

export function hasKey(
  agent: Partial<Pick<Agent, 'formerPublicKey' | 'formerKeyUntil'>> & Pick<Operator, 'publicKey'>,
  publicKey: PublicKey,
  now: number,
): boolean {
  if (agent.publicKey === publicKey) return true;
  return agent.formerPublicKey === publicKey && now < (agent.formerKeyUntil ?? 0);
}
