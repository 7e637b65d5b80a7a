/** Registers, deregisters and reads agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Agents and sessions". */
import type { Agent, PublicKey } from '../agent.ts';
import { ApiError } from '../errors.ts';
import type { AgentId, AgentName } from '../names.ts';
import { operation, rejected, succeeded } from '../operation.ts';
import { adminOperation, adminRead } from './admin-read.ts';

export interface RegisterRequest {
  /** WHY not an id made by the batch: the file of a generated key is staged under this id before the batch. */
  readonly id: AgentId;
  readonly name: AgentName;
  readonly description: string;
  readonly publicKey: PublicKey;
}

export const registerAgent = adminOperation('agent.register', (spec, request: RegisterRequest) =>
  operation({ ...spec, resource: `agent:${request.name}` }, ({ state, moment, entry }) => {
    if (state.control.isNameTaken(request.name)) {
      const denied = entry('denied', { reason: 'the name is taken' });
      const message = 'An agent of this name, or of one that differs only in case, is registered already.';
      return rejected('ALREADY_EXISTS', message, denied);
    }
    const agent: Agent = { ...request, registeredAt: moment.now, sessionsEndedAt: null };
    return succeeded(agent, entry('allowed'), [{ kind: 'putAgent', agent }]);
  }),
);

/**
 * Removes the agent's row and revokes its leases in bulk. Its sessions stop working because they name its id. Replies
 * with that id.
 */
export const deregisterAgent = adminOperation('agent.deregister', (spec, name: AgentName) =>
  operation<AgentId>({ ...spec, resource: `agent:${name}` }, ({ state, moment, entry }) => {
    const agent = state.control.agentByName(name);
    if (agent === null) return rejected('NOT_FOUND', 'The agent is not registered.', entry('not_found'));
    const { id } = agent;
    return succeeded(id, entry('allowed'), [
      { kind: 'removeAgent', id, name },
      {
        kind: 'revokeMatching',
        revocation: { agentId: id, credentialId: null, kind: null, revokedAt: moment.now, seq: moment.seq },
      },
    ]);
  }),
);

export const readAgent = adminOperation('agent.read', (spec, name: AgentName) =>
  adminRead<Agent>(
    spec,
    `agent:${name}`,
    ({ control }) => control.agentByName(name) ?? new ApiError('NOT_FOUND', 'The agent is not registered.'),
  ),
);

/** Sorted by name. */
export const listAgents = adminOperation('agent.list', (spec) =>
  adminRead<readonly Agent[]>(spec, '*', ({ control }) => control.agents()),
);
