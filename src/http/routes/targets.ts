/** Rows of the route table: where credentials may be used. SOURCE: docs/api.md, "Targets". */
import { Path } from '../../api/fields.ts';
import { TargetsRequest } from '../../api/requests.ts';
import { CredentialTargets } from '../../api/responses.ts';
import type { TargetsRequest as TargetsBody } from '../../api/types.ts';
import { invalidRequest } from '../../core/errors.ts';
import { deleteTargets, putTargets, readTargets, type UsageDraft } from '../../core/operations/targets.ts';
import { type CredentialPath, parsePath } from '../../core/path.ts';
import { parsePlacement, parseTargets } from '../../core/target.ts';
import { type Route, route } from '../route.ts';
import { toTargetsResponse } from '../serialize.ts';

/** Given fields override those of the service. @throws INVALID_REQUEST */
function toDraft(path: CredentialPath, { service, targets, placement }: TargetsBody): UsageDraft {
  if (targets === undefined) throw invalidRequest('targets', 'is required without service');
  if (placement === undefined) throw invalidRequest('placement', 'is required without service');
  return {
    path,
    service: service ?? null,
    targets: parseTargets(targets),
    placement: parsePlacement(placement),
  };
}

export const targetRoutes: readonly Route[] = [
  route({
    id: 'putTargets',
    method: 'PUT',
    path: '/api/v1/targets/{path}',
    summary: 'Set where a credential may be used, and how it is placed in a request. Ends its use leases.',
    params: { path: Path },
    who: 'authenticated',
    body: TargetsRequest,
    data: CredentialTargets,
    async handle({ vault, context, params, body }) {
      const draft = toDraft(parsePath(params['path'] ?? ''), body);
      return { data: toTargetsResponse(await vault.ledger.submit(putTargets(context, draft))) };
    },
  }),
  route({
    id: 'readTargets',
    method: 'GET',
    path: '/api/v1/targets/{path}',
    summary: 'Read where a credential may be used.',
    params: { path: Path },
    who: 'authenticated',
    data: CredentialTargets,
    async handle({ vault, context, params }) {
      const path = parsePath(params['path'] ?? '');
      return { data: toTargetsResponse(await vault.ledger.submit(readTargets(context, path))) };
    },
  }),
  route({
    id: 'deleteTargets',
    method: 'DELETE',
    path: '/api/v1/targets/{path}',
    summary: 'Delete the targets of a credential, which then cannot be used. Ends its use leases.',
    params: { path: Path },
    who: 'authenticated',
    status: 204,
    data: null,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(deleteTargets(context, parsePath(params['path'] ?? '')));
      return null;
    },
  }),
];
