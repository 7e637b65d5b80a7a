/** Rows of the route table: where credentials may be used. SOURCE: docs/api.md, "Targets". */
import { Type } from 'typebox';
import { replySchema } from '../../api/resource-schemas.ts';
import { authorize } from '../../core/operation.ts';
import {
  CatalogueService,
  completeBinding,
  SERVICES,
  TargetsRequest,
  toServiceReply,
} from '../../vault/catalogue/catalogue.ts';
import { CredentialTargets } from '../../vault/use/target.ts';
import { deleteTargets, putTargets, readTargets } from '../../vault/use/target-operations.ts';
import { type Route, route, shapedRoute } from '../route.ts';

const params = { path: CredentialTargets.fields.path };

export const targetRoutes: readonly Route[] = [
  shapedRoute({
    id: 'putTargets',
    method: 'PUT',
    path: '/api/v1/targets/{path}',
    summary: 'Set where a credential may be used, and how it is placed in a request. Ends its use leases.',
    permission: 'target.put',
    params,
    body: TargetsRequest,
    reply: CredentialTargets,
    represent: CredentialTargets.toReply,
    handle: ({ vault, context, params, body }) =>
      vault.ledger.submit(putTargets(context, { ...params, ...completeBinding(body) })),
  }),
  shapedRoute({
    id: 'readTargets',
    method: 'GET',
    path: '/api/v1/targets/{path}',
    summary: 'Read where a credential may be used.',
    permission: 'target.read',
    params,
    reply: CredentialTargets,
    represent: CredentialTargets.toReply,
    handle: ({ vault, context, params }) => vault.ledger.read(readTargets(context, params.path)),
  }),
  route({
    id: 'deleteTargets',
    method: 'DELETE',
    path: '/api/v1/targets/{path}',
    summary: 'Delete the targets of a credential, which then cannot be used. Ends its use leases.',
    permission: 'target.delete',
    params,
    represent: CredentialTargets.toReply,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(deleteTargets(context, params.path));
      return null;
    },
  }),
  route({
    id: 'listServices',
    method: 'GET',
    path: '/api/v1/services',
    summary: 'List the services whose targets and placement the catalogue has.',
    permission: 'target.read',
    data: Type.Array(replySchema(CatalogueService)),
    async handle({ vault, context }) {
      await vault.ledger.read(authorize(context, 'target.read'));
      return { data: SERVICES.map(toServiceReply) };
    },
  }),
];
