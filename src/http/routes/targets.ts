/** Rows of the route table: where credentials may be used. SOURCE: docs/api.md, "Targets". */

import { Type } from 'typebox';
import { Path } from '../../api/fields.ts';
import { TargetsRequest } from '../../api/requests.ts';
import { CatalogueService, CredentialTargets } from '../../api/responses.ts';
import { authorize } from '../../core/operation.ts';
import { parsePath } from '../../core/path.ts';
import { completeUsage, SERVICES } from '../../vault/catalogue/catalogue.ts';
import { deleteTargets, putTargets, readTargets } from '../../vault/use/target-operations.ts';
import { type Route, route } from '../route.ts';
import { toServiceResponse, toTargetsResponse } from '../serialize.ts';

export const targetRoutes: readonly Route[] = [
  route({
    id: 'putTargets',
    method: 'PUT',
    path: '/api/v1/targets/{path}',
    summary: 'Set where a credential may be used, and how it is placed in a request. Ends its use leases.',
    permission: 'target.put',
    params: { path: Path },
    body: TargetsRequest,
    data: CredentialTargets,
    represent: toTargetsResponse,
    async handle({ vault, context, params, body }) {
      const draft = { path: parsePath(params['path'] ?? ''), ...completeUsage(body) };
      return { data: toTargetsResponse(await vault.ledger.submit(putTargets(context, draft))) };
    },
  }),
  route({
    id: 'readTargets',
    method: 'GET',
    path: '/api/v1/targets/{path}',
    summary: 'Read where a credential may be used.',
    permission: 'target.read',
    params: { path: Path },
    data: CredentialTargets,
    represent: toTargetsResponse,
    async handle({ vault, context, params }) {
      const path = parsePath(params['path'] ?? '');
      return { data: toTargetsResponse(await vault.ledger.read(readTargets(context, path))) };
    },
  }),
  route({
    id: 'deleteTargets',
    method: 'DELETE',
    path: '/api/v1/targets/{path}',
    summary: 'Delete the targets of a credential, which then cannot be used. Ends its use leases.',
    permission: 'target.delete',
    params: { path: Path },
    represent: toTargetsResponse,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(deleteTargets(context, parsePath(params['path'] ?? '')));
      return null;
    },
  }),
  route({
    id: 'listServices',
    method: 'GET',
    path: '/api/v1/services',
    summary: 'List the services whose targets and placement the catalogue has.',
    permission: 'target.read',
    data: Type.Array(CatalogueService),
    async handle({ vault, context }) {
      await vault.ledger.read(authorize(context, 'target.read'));
      return { data: SERVICES.map(toServiceResponse) };
    },
  }),
];
