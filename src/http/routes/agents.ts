/** Rows of the route table: agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Agents and sessions". */

import { Type } from 'typebox';
import { AgentName } from '../../api/fields.ts';
import { AgentRequest, AgentRotation, PageQuery } from '../../api/requests.ts';
import { Agent, RegisteredAgent, RotatedAgent } from '../../api/responses.ts';
import { parseAgentName, parseDescription } from '../../core/names.ts';
import { toTimestamp } from '../../engine/field.ts';
import { listAgents, readAgent } from '../../vault/agents/agent-operations.ts';
import { deregisterAgent, registerAgent, rotateAgent } from '../../vault/agents/registration.ts';
import { sliceListing } from '../../vault/paging.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { type Route, route } from '../route.ts';
import { toAgentResponse } from '../serialize.ts';

const DEFAULT_GRACE_SECONDS = 300;

export const agentRoutes: readonly Route[] = [
  route({
    id: 'listAgents',
    method: 'GET',
    path: '/api/v1/agents',
    summary: 'List agents.',
    permission: 'agent.list',
    query: PageQuery,
    data: Type.Array(Agent),
    meta: 'paged',
    async handle({ vault, context, query }) {
      const agents = await vault.ledger.read(listAgents(context));
      return streamList(sliceListing(agents, toOptionalPage(query)), toAgentResponse);
    },
  }),
  route({
    id: 'registerAgent',
    method: 'POST',
    path: '/api/v1/agents',
    summary: 'Register an agent, with its public key or with a key pair that the server generates.',
    permission: 'agent.register',
    status: 201,
    body: AgentRequest,
    data: RegisteredAgent,
    acceptsIdempotencyKey: true,
    async handle({ vault, context, body }) {
      const agent = await registerAgent(vault, context, {
        name: parseAgentName(body.name),
        description: parseDescription(body.description ?? ''),
        publicKey: body.public_key ?? null,
      });
      const { name, publicKey, registeredAt } = agent;
      return { data: { name, public_key: publicKey, registered_at: toTimestamp(registeredAt) } };
    },
  }),
  route({
    id: 'readAgent',
    method: 'GET',
    path: '/api/v1/agents/{name}',
    summary: 'Read an agent.',
    params: { name: AgentName },
    permission: 'agent.read',
    data: Agent,
    async handle({ vault, context, params }) {
      const name = parseAgentName(params['name'] ?? '');
      return { data: toAgentResponse(await vault.ledger.read(readAgent(context, name))) };
    },
  }),
  route({
    id: 'rotateAgentKey',
    method: 'POST',
    path: '/api/v1/agents/{name}/rotate',
    summary: "Replace an agent's key; for a time the former one is valid too. Its sessions stay.",
    params: { name: AgentName },
    permission: 'agent.rotate',
    body: AgentRotation,
    data: RotatedAgent,
    async handle({ vault, context, params, body }) {
      const name = parseAgentName(params['name'] ?? '');
      const graceSeconds = body.grace_seconds ?? DEFAULT_GRACE_SECONDS;
      const agent = await rotateAgent(vault, context, name, body.public_key ?? null, graceSeconds);
      const until = agent.formerKeyUntil;
      return {
        data: { name, public_key: agent.publicKey, former_key_until: until === null ? null : toTimestamp(until) },
      };
    },
  }),
  route({
    id: 'deregisterAgent',
    method: 'DELETE',
    path: '/api/v1/agents/{name}',
    summary: 'Deregister an agent: its sessions and leases end immediately.',
    params: { name: AgentName },
    permission: 'agent.deregister',
    async handle({ vault, context, params }) {
      await deregisterAgent(vault, context, parseAgentName(params['name'] ?? ''));
      return null;
    },
  }),
];
