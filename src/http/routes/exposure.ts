/** Rows of the route table: exposure of values, and panic. SOURCE: docs/decisions.md, "Exposure". */
import { Type } from 'typebox';
import { Path } from '../../api/fields.ts';
import { ExposureQuery, PanicRequest } from '../../api/requests.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { parseActorName, parseAgentName } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { exposureBy, exposureOf } from '../../vault/exposure/exposure.ts';
import {
  CredentialExposure,
  Held,
  Panicked,
  toExposureReplies,
  toExposureReply,
  toPanicReply,
} from '../../vault/exposure/exposure-record.ts';
import { panic, readHeld } from '../../vault/exposure/panic.ts';
import { sliceListing } from '../../vault/paging.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { type Route, route } from '../route.ts';

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
      const versions = await exposureBy(vault, context, parseActorName(query.agent, 'agent'), listSignal());
      return streamList(sliceListing(toExposureReplies(versions), toOptionalPage(query)), (row) => row);
    },
  }),
  route({
    id: 'readExposure',
    method: 'GET',
    path: '/api/v1/exposure/{path}',
    summary: 'Read who has seen and used each version of a credential, including deleted ones.',
    params: { path: Path },
    permission: 'exposure.read',
    data: replySchema(CredentialExposure),
    async handle({ vault, context, params, listSignal }) {
      const path = parsePath(params.path);
      return { data: toExposureReply(path, await exposureOf(vault, context, path, listSignal())) };
    },
  }),
  route({
    id: 'readHeld',
    method: 'GET',
    path: '/api/v1/panic',
    summary: 'Count the leases, sessions and brokered requests that a panic would end now.',
    permission: 'exposure.read',
    query: PanicRequest,
    data: replySchema(Held),
    async handle({ vault, context, query, listSignal }) {
      const agentName = query.agent === undefined ? null : parseAgentName(query.agent, 'agent');
      return { data: Held.toReply(await readHeld(vault, context, agentName, listSignal())) };
    },
  }),
  route({
    id: 'panic',
    method: 'POST',
    path: '/api/v1/panic',
    summary: 'End every lease, session and brokered request of an agent, or all, and list the versions to rotate.',
    permission: 'service.panic',
    body: PanicRequest,
    data: replySchema(Panicked),
    async handle({ vault, context, body, listSignal }) {
      const agentName = body.agent === undefined ? null : parseAgentName(body.agent, 'agent');
      return { data: toPanicReply(await panic(vault, context, agentName, listSignal())) };
    },
  }),
];
