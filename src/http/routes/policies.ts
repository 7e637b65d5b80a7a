/** Rows of the route table: policies and simulation. SOURCE: docs/api.md, "Policies"; docs/decisions.md, "Policies". */
import { createPolicy, deletePolicy, listPolicies, readPolicy, replacePolicy } from '../../vault/policies/endpoints.ts';
import { SimulateRequest, Simulation, simulate } from '../../vault/policies/simulate.ts';
import { parseUrl } from '../../vault/use/upstream-url.ts';
import { type Route, shapedRoute, toRoute } from '../route.ts';

export const policyRoutes: readonly Route[] = [
  toRoute(listPolicies),
  toRoute(createPolicy),
  shapedRoute({
    id: 'simulateAccess',
    method: 'POST',
    path: '/api/v1/policies/simulate',
    summary: 'Simulate a decision without access to a value. An agent may simulate only for itself.',
    permission: 'policy.simulate',
    body: SimulateRequest,
    reply: Simulation,
    handle({ vault, context, body: { request, ...question } }) {
      const url = request === null ? null : parseUrl(request.url, 'request.url');
      const use = request === null || url === null ? null : { method: request.method, url };
      return vault.ledger.read(simulate(context, { ...question, request: use }));
    },
  }),
  toRoute(readPolicy),
  toRoute(replacePolicy),
  toRoute(deletePolicy),
];
