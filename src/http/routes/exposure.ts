/** Rows of the route table: exposure of values, and panic. SOURCE: docs/decisions.md, "Exposure". */
import { Type } from 'typebox';
import { replySchema } from '../../api/resource-schemas.ts';
import { toOptionalPage } from '../../core/page.ts';
import { exposureBy, exposureOf } from '../../vault/exposure/exposure.ts';
import {
  CredentialExposure,
  ExposureQuery,
  Held,
  Panicked,
  PanicRequest,
  toExposureReplies,
  toExposureReply,
  toPanicReply,
} from '../../vault/exposure/exposure-record.ts';
import { panic, readHeld } from '../../vault/exposure/panic.ts';
import { sliceListing } from '../../vault/paging.ts';
import { streamList } from '../lists.ts';
import { type Route, route, shapedRoute } from '../route.ts';

export const exposureRoutes: readonly Route[] = [
  route({
    id: 'listExposure',
    method: 'GET',
    path: '/api/v1/exposure',
    summary: 'List what an agent has seen and used, by credential and version.',
    permission: 'exposure.read',
    query: ExposureQuery,
    data: Type.Array(replySchema(CredentialExposure)),
    meta: 'paged',
    async handle({ vault, context, query, listSignal }) {
      const versions = await exposureBy(vault, context, query.agentName, listSignal());
      return streamList(sliceListing(toExposureReplies(versions), toOptionalPage(query)), (row) => row);
    },
  }),
  route({
    id: 'readExposure',
    method: 'GET',
    path: '/api/v1/exposure/{path}',
    summary: 'Read who has seen and used each version of a credential, including deleted ones.',
    params: { path: CredentialExposure.fields.path },
    permission: 'exposure.read',
    data: replySchema(CredentialExposure),
    async handle({ vault, context, params: { path }, listSignal }) {
      return { data: toExposureReply(path, await exposureOf(vault, context, path, listSignal())) };
    },
  }),
  shapedRoute({
    id: 'readHeld',
    method: 'GET',
    path: '/api/v1/panic',
    summary: 'Count the leases, sessions and brokered requests that a panic would end now.',
    permission: 'exposure.read',
    query: PanicRequest,
    reply: Held,
    handle: ({ vault, context, query, listSignal }) => readHeld(vault, context, query.agentName, listSignal()),
  }),
  route({
    id: 'panic',
    method: 'POST',
    path: '/api/v1/panic',
    summary: 'End every lease, session and brokered request of an agent, or all, and list the versions to rotate.',
    permission: 'service.panic',
    body: PanicRequest,
    data: replySchema(Panicked),
    handle: async ({ vault, context, body, listSignal }) => ({
      data: toPanicReply(await panic(vault, context, body.agentName, listSignal())),
    }),
  }),
];
