/** Rows of the route table: leases. SOURCE: docs/decisions.md, "Leases". */
import { Type } from 'typebox';
import { Id } from '../../api/fields.ts';
import { LeasesQuery, Nothing, RevokeRequest, UseLeaseRequest } from '../../api/requests.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { RevokeResponse, UseLease } from '../../api/responses.ts';
import type { UseLeaseWire as UseLeaseResponse } from '../../api/types.ts';
import { parseActorName, parseLeaseId } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { sdkEnvironment } from '../../vault/catalogue/sdk-environment.ts';
import { ListedLease, toLeaseReply } from '../../vault/leases/lease.ts';
import { type LeaseAt, readLease, renewLease, revokeLease } from '../../vault/leases/lease-operations.ts';
import { listLeases, revokeLeases } from '../../vault/leases/leases.ts';
import { parseTtl } from '../../vault/policies/policy.ts';
import { baseUrlOf } from '../../vault/use/base-url.ts';
import { parsePurpose } from '../../vault/use/upstream-url.ts';
import { type NewUseLease, newUseLease } from '../../vault/use/use-leases.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { type Reply, type Route, route } from '../route.ts';

function parseHolder({ agent, path }: { agent?: string | undefined; path?: string | undefined }) {
  return {
    agentName: agent === undefined ? null : parseActorName(agent, 'agent'),
    path: path === undefined ? null : parsePath(path),
  };
}

const toReply = ({ lease, now }: LeaseAt): Reply => ({ data: toLeaseReply(now)(lease) });

export const leaseRoutes: readonly Route[] = [
  route({
    id: 'listLeases',
    method: 'GET',
    path: '/api/v1/leases',
    summary: 'List leases, newest first, including those that ended within 7 days. An agent sees its own.',
    permission: 'lease.list',
    query: LeasesQuery,
    data: Type.Array(replySchema(ListedLease)),
    meta: 'paged',
    async handle({ vault, context, query, listSignal }) {
      const filter = { ...parseHolder(query), status: query.status ?? null };
      const listing = await listLeases(vault, context, filter, toOptionalPage(query), listSignal());
      return streamList(listing, toLeaseReply(listing.now));
    },
  }),
  route({
    id: 'issueUseLease',
    method: 'POST',
    path: '/api/v1/leases/use',
    summary: 'Issue a use lease, whose token is accepted at the base URL of the credential.',
    permission: 'lease.use',
    body: UseLeaseRequest,
    status: 201,
    data: UseLease,
    async handle({ vault, context, body, serverUrl }) {
      const path = parsePath(body.path);
      const url = `${baseUrlOf(serverUrl(), path)}/-`;
      const ttlSeconds = body.ttl === undefined ? null : parseTtl(body.ttl, 'ttl');
      const purpose = body.purpose === undefined ? null : parsePurpose(body.purpose);
      const issued = await newUseLease(vault, context, { path, ttlSeconds, purpose });
      return { data: toUseLeaseResponse(issued, url) };
    },
  }),
  route({
    id: 'revokeLeases',
    method: 'POST',
    path: '/api/v1/leases/revoke',
    summary: 'Revoke all active leases of an agent, of a path, or both.',
    permission: 'lease.revoke',
    body: RevokeRequest,
    data: RevokeResponse,
    acceptsIdempotencyKey: true,
    async handle({ vault, context, body, listSignal }) {
      const request = parseHolder(body);
      if (request.agentName === null && request.path === null)
        throw invalidRequest('agent', 'is required, or path, or both');
      return { data: { revoked: await revokeLeases(vault, context, request, listSignal()) } };
    },
  }),
  route({
    id: 'readLease',
    method: 'GET',
    path: '/api/v1/leases/{lease_id}',
    summary: 'Read a lease.',
    permission: 'lease.read',
    params: { lease_id: Id },
    data: replySchema(ListedLease),
    async handle({ vault, context, params }) {
      const id = parseLeaseId(params.lease_id);
      return toReply(await vault.ledger.read(readLease(context, id)));
    },
  }),
  route({
    id: 'renewLease',
    method: 'POST',
    path: '/api/v1/leases/{lease_id}/renew',
    summary: 'Renew a lease from now, if the current policies allow it.',
    permission: 'lease.renew',
    params: { lease_id: Id },
    body: Nothing,
    data: replySchema(ListedLease),
    acceptsIdempotencyKey: true,
    async handle({ vault, context, params }) {
      const id = parseLeaseId(params.lease_id);
      return toReply(await vault.ledger.submit(renewLease(context, id)));
    },
  }),
  route({
    id: 'revokeLease',
    method: 'DELETE',
    path: '/api/v1/leases/{lease_id}',
    summary: 'Revoke a lease.',
    permission: 'lease.revoke',
    params: { lease_id: Id },
    async handle({ vault, context, params }) {
      await vault.ledger.submit(revokeLease(context, parseLeaseId(params.lease_id)));
      return null;
    },
  }),
];

const toUseLeaseResponse = ({ lease, token, service }: NewUseLease, baseUrl: string): UseLeaseResponse => ({
  lease_id: lease.id,
  token: token.reveal(),
  base_url: baseUrl,
  expires_at: toTimestamp(lease.expiresAt),
  env: service === null ? {} : sdkEnvironment(service, baseUrl, token.reveal()),
});
