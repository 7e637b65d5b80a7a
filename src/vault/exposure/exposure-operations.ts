/**
 * Who has seen or used credentials, and the panic, which ends everything that an agent, or all agents, hold. SOURCE:
 * docs/api.md, "Exposure and panic"; docs/decisions.md, "Exposure".
 */
import { putRow } from '../../core/change.ts';
import type { AgentId, AgentName } from '../../core/names.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  operation,
  rejected,
  succeeded,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { allLeasesOf, type BulkRevocation } from '../leases/lease.ts';

const panicResource = (name: AgentName | null): string => (name === null ? '*' : `agent:${name}`);

/** The time to which `live` refers, and whether a credential has the path now. Not recorded. */
export interface ExposureRead {
  readonly now: number;
  readonly exists: boolean;
}

/** `path` is null for an exposure by agent, whose resource is `agent:<name>`. */
export const readExposure = (context: Context, path: CredentialPath | null, resource: string) =>
  operation<ExposureRead>(
    { context, permission: 'exposure.read', resource, reads: path === null ? {} : { credential: path } },
    (input) => {
      const { state, moment } = input;
      const exists = path !== null && (state.credential(path) !== null || state.isAltered(path));
      return succeeded({ now: moment.now, exists }, null);
    },
  );

/** The time to which the counts refer, and the agent that they are about: null for all agents. */
export interface HeldRead {
  readonly now: number;
  readonly agentId: AgentId | null;
}

/** Whether the caller may count what a panic would end. Not recorded. */
export const readHeld = (context: Context, name: AgentName | null) =>
  operation<HeldRead>({ context, permission: 'exposure.read', resource: panicResource(name) }, ({ state, moment }) => {
    const { now } = moment;
    if (name === null) return succeeded({ now, agentId: null }, null);
    const agent = state.control.agentByName(name);
    if (agent === null) return rejected({ code: 'agent_not_found' }, null);
    return succeeded({ now, agentId: agent.id }, null);
  });

export interface Panic {
  readonly revocation: BulkRevocation;
  /** The time at which a previous panic ended the sessions of each agent, or null. */
  readonly endedBefore: readonly (readonly [AgentId, number | null])[];
}

/**
 * Ends every lease and session of the agent, or all of them for null, with one bulk revocation and a time in the row of
 * each agent. What begins after it works.
 */
export function panic(context: Context, name: AgentName | null): Operation<Panic> {
  const permission = name === null ? 'service.panic' : 'agent.panic';
  const resource = panicResource(name);
  return operation({ context, permission, resource }, (input) => {
    const { state } = input;
    if (name === null) return ended(input, null, state.control.agents());
    const agent = state.control.agentByName(name);
    if (agent === null) return denied(input, { code: 'agent_not_found' });
    return ended(input, agent.id, [agent]);
  });
}

function ended(
  { entry, moment }: OperationInput,
  agentId: AgentId | null,
  agents: ReturnType<OperationInput['state']['control']['agents']>,
) {
  const revocation = allLeasesOf(agentId, moment);
  const panicked: Panic = { revocation, endedBefore: agents.map(({ id, sessionsEndedAt }) => [id, sessionsEndedAt]) };
  return succeeded(panicked, entry('allowed', { reason: 'all leases and sessions ended' }), [
    { kind: 'revokeMatching', revocation },
    ...agents.map((agent) => putRow('agent', { ...agent, sessionsEndedAt: moment.now })),
  ]);
}
