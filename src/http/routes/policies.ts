/** Rows of the route table: policies and simulation. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */
import { SimulateRequest } from '../../api/requests.ts';
import { Simulation } from '../../api/responses.ts';
import type { SimulateRequest as SimulateRequestBody } from '../../api/types.ts';
import { parsePrincipalName } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { createPolicy, deletePolicy, listPolicies, readPolicy, replacePolicy } from '../../vault/policies/endpoints.ts';
import { simulate } from '../../vault/policies/simulate.ts';
import { parseMethod, type UseRequest } from '../../vault/use/target.ts';
import { parseUrl } from '../../vault/use/upstream-url.ts';
import { type Route, route, toRoute } from '../route.ts';

function toUseRequest({ action, request }: SimulateRequestBody): UseRequest | null {
  if (request === undefined) return null;
  if (action !== 'use') throw invalidRequest('request', 'is only for the action use');
  return { method: parseMethod(request.method, 'request.method'), url: parseUrl(request.url, 'request.url') };
}

export const policyRoutes: readonly Route[] = [
  toRoute(listPolicies),
  toRoute(createPolicy),
  route({
    id: 'simulateAccess',
    method: 'POST',
    path: '/api/v1/policies/simulate',
    summary: 'Simulate a decision without access to a value. An agent may simulate only for itself.',
    permission: 'policy.simulate',
    body: SimulateRequest,
    data: Simulation,
    async handle({ vault, context, body }) {
      const question = {
        agent: parsePrincipalName(body.agent, 'agent'),
        path: parsePath(body.resource, 'resource'),
        action: body.action,
        request: toUseRequest(body),
      };
      const simulated = await vault.ledger.read(simulate(context, question));
      const { allowed, policyName, leaseTtlSeconds, reason } = simulated;
      return { data: { allowed, policy_name: policyName, lease_ttl: leaseTtlSeconds, reason } };
    },
  }),
  toRoute(readPolicy),
  toRoute(replacePolicy),
  toRoute(deletePolicy),
];
