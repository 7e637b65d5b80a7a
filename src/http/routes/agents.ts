/** Rows of the route table: agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Agents and sessions". */
import { Agent, RegisteredAgent, Registration, RotatedAgent, Rotation } from '../../vault/agents/agent.ts';
import { listAgents, readAgent } from '../../vault/agents/endpoints.ts';
import { deregisterAgent, registerAgent, rotateAgent } from '../../vault/agents/registration.ts';
import { type Route, route, shapedRoute, toRoute } from '../route.ts';

const params = { name: Agent.fields.name };

export const agentRoutes: readonly Route[] = [
  toRoute(listAgents),
  shapedRoute({
    id: 'registerAgent',
    method: 'POST',
    path: '/api/v1/agents',
    summary: 'Register an agent, with its public key or with a key pair that the server generates.',
    permission: 'agent.register',
    status: 201,
    acceptsIdempotencyKey: true,
    body: Registration,
    reply: RegisteredAgent,
    handle: ({ vault, context, body }) => registerAgent(vault, context, body),
  }),
  toRoute(readAgent),
  shapedRoute({
    id: 'rotateAgentKey',
    method: 'POST',
    path: '/api/v1/agents/{name}/rotate',
    summary: "Replace an agent's key; for a time the previous one is valid too. Its sessions stay.",
    params,
    permission: 'agent.rotate',
    body: Rotation,
    reply: RotatedAgent,
    handle: ({ vault, context, params, body }) => rotateAgent(vault, context, params.name, body),
  }),
  route({
    id: 'deregisterAgent',
    method: 'DELETE',
    path: '/api/v1/agents/{name}',
    summary: 'Deregister an agent: its sessions and leases end immediately.',
    params,
    permission: 'agent.deregister',
    represent: Agent.toReply,
    async handle({ vault, context, params }) {
      await deregisterAgent(vault, context, params.name);
      return null;
    },
  }),
];
