/**
 * Registers agents, replaces their keys, and deregisters them. SOURCE: docs/api.md, "Agents"; docs/decisions.md,
 * "Agents and sessions".
 */

import { putRow, removeRow } from '../../core/change.ts';
import { actorName } from '../../core/identity.ts';
import type { ActorName, AgentId, AgentName, PublicKey } from '../../core/names.ts';
import { type Context, denied, operation, succeeded } from '../../core/operation.ts';
import { allLeasesOf } from '../leases/lease.ts';
import { agentBeyondReach } from '../policies/reach.ts';
import type { Agent, Rotation } from './agent.ts';

interface NewAgent extends Pick<Agent, 'name' | 'description' | 'publicKey'> {
  /** WHY not an id made by the batch: the file of a generated key is staged under this id before the batch. */
  readonly id: AgentId;
}

export const registerAgent = (context: Context, request: NewAgent) =>
  operation<Agent>({ context, permission: 'agent.register', resource: `agent:${request.name}` }, (input) => {
    const { state, moment, entry } = input;
    const beyond = agentBeyondReach(input, request.name);
    if (beyond !== null) return beyond;
    if (state.control.isNameTaken(request.name)) return denied(input, { code: 'name_taken', of: 'agent' });
    const agent: Agent = {
      ...request,
      registeredAt: moment.now,
      sessionsEndedAt: null,
      formerPublicKey: null,
      formerKeyUntil: null,
      registeredBy: [actorName(input.identity)],
    };
    return succeeded(agent, entry('allowed'), [putRow('agent', agent)]);
  });

/** The agent whose key will be replaced: rejects what `rotateAgentKey` would, before a key is made. */
export const findAgentToRotate = (context: Context, name: AgentName) =>
  operation<Agent>({ context, permission: 'agent.rotate', resource: `agent:${name}` }, (input) => {
    const known = input.state.control.agentByName(name);
    if (known === null) return denied(input, { code: 'agent_not_found' });
    return agentBeyondReach(input, name) ?? succeeded(known, null);
  });

function withName(names: readonly ActorName[], name: ActorName): readonly ActorName[] {
  return names.includes(name) ? names : [...names, name];
}

interface KeyRotation extends Pick<Rotation, 'graceSeconds'> {
  readonly publicKey: PublicKey;
}

export const rotateAgentKey = (context: Context, name: AgentName, rotation: KeyRotation) =>
  operation<Agent>({ context, permission: 'agent.rotate', resource: `agent:${name}` }, (input) => {
    const { state, moment, entry } = input;
    const known = state.control.agentByName(name);
    if (known === null) return denied(input, { code: 'agent_not_found' });
    const beyond = agentBeyondReach(input, name);
    if (beyond !== null) return beyond;
    const { publicKey, graceSeconds } = rotation;
    const isNew = known.publicKey !== publicKey;
    // A repeat of the request must not make the new key the previous one. It can shorten the time of the previous key.
    const formerPublicKey = isNew ? known.publicKey : known.formerPublicKey;
    const longest = isNew ? Number.POSITIVE_INFINITY : (known.formerKeyUntil ?? 0);
    const formerKeyUntil = formerPublicKey === null ? null : Math.min(moment.now + graceSeconds * 1000, longest);
    // WHY all of them: sessions that a previous key opened stay, and so do logins with it for a time.
    const registeredBy = isNew ? withName(known.registeredBy, actorName(input.identity)) : known.registeredBy;
    const agent: Agent = { ...known, publicKey, formerPublicKey, formerKeyUntil, registeredBy };
    const validSeconds = Math.max(0, Math.ceil(((formerKeyUntil ?? 0) - moment.now) / 1000));
    const reason = `the former key is valid for ${validSeconds} seconds`;
    return succeeded(agent, entry('allowed', { reason }), [putRow('agent', agent)]);
  });

/**
 * Removes the agent's row and revokes its leases in bulk. Its sessions stop working because they name its id. Replies
 * with that id.
 */
export const deregisterAgent = (context: Context, name: AgentName) =>
  operation<AgentId>(
    {
      context,
      permission: 'agent.deregister',
      resource: `agent:${name}`,
      target: ({ control }) => control.agentByName(name),
    },
    (input) => {
      const { state, moment, entry } = input;
      const agent = state.control.agentByName(name);
      if (agent === null) return denied(input, { code: 'agent_not_found' });
      const beyond = agentBeyondReach(input, name);
      if (beyond !== null) return beyond;
      const { id } = agent;
      return succeeded(id, entry('allowed'), [
        removeRow('agent', { id, name }),
        { kind: 'revokeMatching', revocation: allLeasesOf(id, moment) },
      ]);
    },
  );
