/** Endpoints that read agents. SOURCE: docs/api.md, "Agents". */
import { adminEndpoint, keyOf, nothing } from '../../core/endpoint.ts';
import { rejected, succeeded } from '../../core/operation.ts';
import { Agent } from './agent.ts';

/** Replies with the agents, sorted by name. */
export const listAgents = adminEndpoint({
  id: 'listAgents',
  method: 'GET',
  path: '/api/v1/agents',
  summary: 'List agents.',
  permission: 'agent.list',
  input: nothing(Agent),
  reply: 'list',
  decide: ({ state }) => succeeded<readonly Agent[]>(state.control.agents(), null),
});

export const readAgent = adminEndpoint({
  id: 'readAgent',
  method: 'GET',
  path: '/api/v1/agents/{name}',
  summary: 'Read an agent.',
  permission: 'agent.read',
  input: keyOf(Agent),
  reply: 'row',
  find: ({ control }, name) => control.agentByName(name),
  decide({ state }, name) {
    const agent = state.control.agentByName(name);
    return agent === null ? rejected({ code: 'agent_not_found' }, null) : succeeded(agent, null);
  },
});
