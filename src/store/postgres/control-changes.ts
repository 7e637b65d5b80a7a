/**
 * Reads the agents, operators and policies that other nodes changed. Rows and removals store the epoch of the batch
 * that wrote them.
 */
import { type ActorName, type AgentId, type AgentName, isOperatorName, type PolicyName } from '../../core/names.ts';
import { newestState, toStates } from '../recorded-states.ts';
import { AGENTS, OPERATORS, POLICIES } from '../schema.ts';
import { raw } from '../statement.ts';
import type { ControlChanges } from '../store.ts';
import type { Connection } from './connection.ts';

/** A node that missed more epochs reloads everything. Removals are kept for longer. */
const MAX_EPOCHS_BEHIND = 10_000;
export const EPOCHS_RETAINED = 2 * MAX_EPOCHS_BEHIND;

/** Null if the node is too far behind and must reload everything. @throws errors of the driver */
export async function readControl(
  connection: Connection,
  afterEpoch: number,
  epoch: number,
): Promise<ControlChanges | null> {
  if (epoch - afterEpoch > MAX_EPOCHS_BEHIND || epoch < afterEpoch) return null;
  const [removals, agents, operators, policies, states] = await Promise.all([
    connection.query`SELECT agent_id, name FROM control_removals WHERE epoch > ${afterEpoch}::bigint`,
    connection.query`SELECT ${AGENTS.list} FROM agents WHERE epoch > ${afterEpoch}::bigint`,
    connection.query`SELECT ${OPERATORS.list} FROM operators WHERE epoch > ${afterEpoch}::bigint`,
    connection.query`SELECT ${POLICIES.list} FROM policies WHERE epoch > ${afterEpoch}::bigint`,
    connection.query`SELECT changed.subject, ${newestState(raw('changed.subject'))} AS state FROM (
      SELECT 'agent:' || lower(name) FROM agents WHERE epoch > ${afterEpoch}::bigint
      UNION SELECT lower(name) FROM operators WHERE epoch > ${afterEpoch}::bigint
      UNION SELECT 'policy:' || name FROM policies WHERE epoch > ${afterEpoch}::bigint
      UNION SELECT CASE WHEN name LIKE 'operator:%' THEN lower(name) WHEN agent_id = '' THEN 'policy:' || name
        ELSE 'agent:' || lower(name) END
        FROM control_removals WHERE epoch > ${afterEpoch}::bigint) AS changed (subject)`,
  ]);
  const removed = removals.map((row) => ({ id: String(row['agent_id']), name: String(row['name']) }));
  const named = removed.filter(({ id }) => id === '').map(({ name }) => name as ActorName);
  return {
    removedAgents: removed
      .filter(({ id }) => id !== '')
      .map(({ id, name }) => ({ id: id as AgentId, name: name as AgentName })),
    removedOperators: named.filter((name) => isOperatorName(name)),
    removedPolicies: named.filter((name) => !isOperatorName(name)).map((name) => name as string as PolicyName),
    agents: agents.map((row) => AGENTS.decode(row)),
    operators: operators.map((row) => OPERATORS.decode(row)),
    policies: policies.map((row) => POLICIES.decode(row)),
    states: new Map(toStates(states)),
  };
}
