/** Rows of the route table: policies and simulation. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */

import { Type } from 'typebox';
import { PolicyName } from '../../api/fields.ts';
import { PageQuery, PolicyReplacement, PolicyRequest, SimulateRequest } from '../../api/requests.ts';
import { Policy, Simulation } from '../../api/responses.ts';
import type { PolicyReplacement as PolicyFields, SimulateRequest as SimulateRequestBody } from '../../api/types.ts';
import { invalidRequest } from '../../core/errors.ts';
import { parsePolicyName, parsePrincipalName } from '../../core/names.ts';
import {
  createPolicy,
  deletePolicy,
  listPolicies,
  readPolicy,
  replacePolicy,
  simulate,
} from '../../core/operations/policies.ts';
import { parsePath } from '../../core/path.ts';
import { type PolicyDraft, parsePolicy } from '../../core/policy.ts';
import { parseMethod, type UseRequest } from '../../core/target.ts';
import { parseUrl } from '../../core/upstream-url.ts';
import { sliceListing } from '../../vault/paging.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { adminRoute, type Route, route } from '../route.ts';
import { toPolicyResponse } from '../serialize.ts';

function toDraft(name: string, { max_ttl: maxTtlSeconds, ...fields }: PolicyFields): PolicyDraft {
  return parsePolicy({ ...fields, name, maxTtlSeconds });
}

/** @throws INVALID_REQUEST */
function toUseRequest({ action, request }: SimulateRequestBody): UseRequest | null {
  if (request === undefined) return null;
  if (action !== 'use') throw invalidRequest('request', 'is only for the action use');
  return { method: parseMethod(request.method, 'request.method'), url: parseUrl(request.url, 'request.url') };
}

export const policyRoutes: readonly Route[] = [
  adminRoute({
    id: 'listPolicies',
    method: 'GET',
    path: '/api/v1/policies',
    summary: 'List policies.',
    adminEvent: 'policy.list',
    query: PageQuery,
    data: Type.Array(Policy),
    meta: 'paged',
    async handle({ vault, context, query }) {
      const policies = await vault.ledger.submit(listPolicies(context));
      return streamList(sliceListing(policies, toOptionalPage(query)), toPolicyResponse);
    },
  }),
  adminRoute({
    id: 'createPolicy',
    method: 'POST',
    path: '/api/v1/policies',
    summary: 'Create a policy.',
    adminEvent: 'policy.create',
    status: 201,
    body: PolicyRequest,
    data: Policy,
    acceptsIdempotencyKey: true,
    async handle({ vault, context, body }) {
      return { data: toPolicyResponse(await vault.ledger.submit(createPolicy(context, toDraft(body.name, body)))) };
    },
  }),
  route({
    id: 'simulateAccess',
    method: 'POST',
    path: '/api/v1/policies/simulate',
    summary: 'Simulate a decision without access to a value. An agent may simulate only for itself.',
    body: SimulateRequest,
    data: Simulation,
    async handle({ vault, context, body }) {
      const question = {
        agent: parsePrincipalName(body.agent, 'agent'),
        path: parsePath(body.resource, 'resource'),
        action: body.action,
        request: toUseRequest(body),
      };
      const simulated = await vault.ledger.submit(simulate(context, question));
      const { allowed, policyName, leaseTtlSeconds, reason } = simulated;
      return { data: { allowed, policy_name: policyName, lease_ttl: leaseTtlSeconds, reason } };
    },
  }),
  adminRoute({
    id: 'readPolicy',
    method: 'GET',
    path: '/api/v1/policies/{name}',
    summary: 'Read a policy.',
    params: { name: PolicyName },
    adminEvent: 'policy.read',
    data: Policy,
    represent: toPolicyResponse,
    async handle({ vault, context, params }) {
      const name = parsePolicyName(params['name'] ?? '');
      return { data: toPolicyResponse(await vault.ledger.submit(readPolicy(context, name))) };
    },
  }),
  adminRoute({
    id: 'replacePolicy',
    method: 'PUT',
    path: '/api/v1/policies/{name}',
    summary: 'Create or replace a policy.',
    params: { name: PolicyName },
    adminEvent: 'policy.replace',
    body: PolicyReplacement,
    data: Policy,
    represent: toPolicyResponse,
    async handle({ vault, context, params, body }) {
      const name = params['name'] ?? '';
      if (body.name !== undefined && body.name !== name)
        throw invalidRequest('name', 'must equal the name in the path');
      return { data: toPolicyResponse(await vault.ledger.submit(replacePolicy(context, toDraft(name, body)))) };
    },
  }),
  adminRoute({
    id: 'deletePolicy',
    method: 'DELETE',
    path: '/api/v1/policies/{name}',
    summary: 'Delete a policy. It grants nothing from its audit entry on.',
    params: { name: PolicyName },
    adminEvent: 'policy.delete',
    represent: toPolicyResponse,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(deletePolicy(context, parsePolicyName(params['name'] ?? '')));
      return null;
    },
  }),
];
