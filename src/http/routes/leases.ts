/** Rows of the route table: leases. SOURCE: docs/decisions.md, "Leases". */
import { Type } from 'typebox';
import { replySchema } from '../../api/resource-schemas.ts';
import { UseLease } from '../../api/responses.ts';
import type { UseLeaseWire as UseLeaseResponse } from '../../api/types.ts';
import { toOptionalPage } from '../../core/page.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { sdkEnvironment } from '../../vault/catalogue/sdk-environment.ts';
import { LeasesQuery, ListedLease, RevokedLeases, RevokeRequest, toLeaseReply } from '../../vault/leases/lease.ts';
import { type LeaseAt, readLease, renewLease, revokeLease } from '../../vault/leases/lease-operations.ts';
import { listLeases, revokeLeases } from '../../vault/leases/leases.ts';
import { baseUrlOf } from '../../vault/use/base-url.ts';
import { UseLeaseBody } from '../../vault/use/use-lease-operations.ts';
import { type NewUseLease, newUseLease } from '../../vault/use/use-leases.ts';
import { streamList } from '../lists.ts';
import { Nothing, type Reply, type Route, route, shapedRoute } from '../route.ts';

const params = { id: ListedLease.fields.id };

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
      const listing = await listLeases(vault, context, query, toOptionalPage(query), listSignal());
      return streamList(listing, toLeaseReply(listing.now));
    },
  }),
  route({
    id: 'issueUseLease',
    method: 'POST',
    path: '/api/v1/leases/use',
    summary: 'Issue a use lease, whose token is accepted at the base URL of the credential.',
    permission: 'lease.use',
    body: UseLeaseBody,
    status: 201,
    data: UseLease,
    async handle({ vault, context, body, serverUrl }) {
      const url = `${baseUrlOf(serverUrl(), body.path)}/-`;
      return { data: toUseLeaseResponse(await newUseLease(vault, context, body), url) };
    },
  }),
  shapedRoute({
    id: 'revokeLeases',
    method: 'POST',
    path: '/api/v1/leases/revoke',
    summary: 'Revoke all active leases of an agent, of a path, or both.',
    permission: 'lease.revoke',
    body: RevokeRequest,
    reply: RevokedLeases,
    acceptsIdempotencyKey: true,
    handle: async ({ vault, context, body, listSignal }) => ({
      revoked: await revokeLeases(vault, context, body, listSignal()),
    }),
  }),
  route({
    id: 'readLease',
    method: 'GET',
    path: '/api/v1/leases/{lease_id}',
    summary: 'Read a lease.',
    permission: 'lease.read',
    params,
    data: replySchema(ListedLease),
    async handle({ vault, context, params }) {
      return toReply(await vault.ledger.read(readLease(context, params.id)));
    },
  }),
  route({
    id: 'renewLease',
    method: 'POST',
    path: '/api/v1/leases/{lease_id}/renew',
    summary: 'Renew a lease from now, if the current policies allow it.',
    permission: 'lease.renew',
    params,
    body: Nothing,
    data: replySchema(ListedLease),
    acceptsIdempotencyKey: true,
    async handle({ vault, context, params }) {
      return toReply(await vault.ledger.submit(renewLease(context, params.id)));
    },
  }),
  route({
    id: 'revokeLease',
    method: 'DELETE',
    path: '/api/v1/leases/{lease_id}',
    summary: 'Revoke a lease.',
    permission: 'lease.revoke',
    params,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(revokeLease(context, params.id));
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
