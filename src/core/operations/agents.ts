/** Registers, deregisters and reads agents. SOURCE: interface 4.3; decisions, "Callers". */
import type { Agent, PublicKey } from '../agent.ts';
import { ApiError } from '../errors.ts';
import type { AgentId, AgentName } from '../names.ts';
import { type Context, type Operation, operation, refused, succeeded } from '../operation.ts';
import { adminRead } from './admin-read.ts';

export interface RegisterRequest {
  /** WHY not a fresh id of the batch: the file of a generated key is staged under it before the batch. */
  readonly id: AgentId;
  readonly name: AgentName;
  readonly description: string;
  readonly publicKey: PublicKey;
}

export function registerAgent(context: Context, request: RegisterRequest): Operation<Agent> {
  const resource = `agent:${request.name}`;
  return operation(
    { context, event: 'agent.register', resource, requiredRole: 'admin' },
    ({ state, moment, entry }) => {
      if (state.control.isNameTaken(request.name)) {
        const denied = entry('denied', { reason: 'the name is taken' });
        const message = 'An agent of this name, or of one that differs only in case, is registered already.';
        return refused('ALREADY_EXISTS', message, denied);
      }
      const agent: Agent = { ...request, registeredAt: moment.now };
      return succeeded(agent, entry('allowed'), [{ kind: 'putAgent', agent }]);
    },
  );
}

/** Removes the agent, its sessions (they are bound to its id) and all its leases. Replies the removed id. */
export function deregisterAgent(context: Context, name: AgentName): Operation<AgentId> {
  return operation(
    { context, event: 'agent.deregister', resource: `agent:${name}`, requiredRole: 'admin' },
    ({ state, moment, entry }) => {
      const agent = state.control.agentByName(name);
      if (agent === null) return refused('NOT_FOUND', 'The agent is not registered.', entry('not_found'));
      const { id } = agent;
      return succeeded(id, entry('allowed'), [
        { kind: 'removeAgent', id, name },
        { kind: 'markRevoked', mark: { agentId: id, credentialId: null, revokedAt: moment.now, seq: moment.seq } },
      ]);
    },
  );
}

export function readAgent(context: Context, name: AgentName): Operation<Agent> {
  return adminRead(
    context,
    'agent.read',
    `agent:${name}`,
    ({ control }) => control.agentByName(name) ?? new ApiError('NOT_FOUND', 'The agent is not registered.'),
  );
}

/** By name. */
export function listAgents(context: Context): Operation<readonly Agent[]> {
  return adminRead(context, 'agent.list', '*', ({ control }) => control.agents());
}
