/** Rows of the route table: credentials. SOURCE: docs/api.md, "Credentials"; docs/decisions.md, "Credentials". */
import { Type } from 'typebox';
import { Path, StringEnum } from '../../api/fields.ts';
import { ListCredentialsQuery, RetrieveQuery, StoreRequest } from '../../api/requests.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { RetrieveResponse } from '../../api/responses.ts';
import { parseCredentialType, parseDescription } from '../../core/names.ts';
import { parsePath } from '../../core/path.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import {
  CredentialMetadata,
  CredentialState,
  ListedCredential,
  parseValue,
  StoredCredential,
} from '../../vault/credentials/credential.ts';
import { remove } from '../../vault/credentials/credential-operations.ts';
import {
  listCredentials,
  readCredentialMetadata,
  retrieveCredential,
  storeCredential,
} from '../../vault/credentials/credentials.ts';
import { parseTtl } from '../../vault/policies/policy.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { type Route, route } from '../route.ts';

export const credentialRoutes: readonly Route[] = [
  route({
    id: 'listCredentials',
    method: 'GET',
    path: '/api/v1/credentials',
    summary: 'List credentials, without values. An agent sees the paths that its policies let it list.',
    permission: 'credential.list',
    query: ListCredentialsQuery,
    data: Type.Array(replySchema(ListedCredential)),
    meta: 'paged',
    async handle({ vault, context, query, listSignal }) {
      const type = query.type === undefined ? null : parseCredentialType(query.type);
      const page = toOptionalPage(query);
      const listing = await listCredentials(vault, context, { type }, page, listSignal());
      return streamList(listing, ListedCredential.toReply);
    },
  }),
  route({
    id: 'retrieveCredential',
    method: 'GET',
    path: '/api/v1/credentials/{path}',
    summary: 'Retrieve a value and a lease; with view=metadata, read the credential without its value.',
    permission: 'credential.retrieve',
    params: { path: Path },
    query: RetrieveQuery,
    data: Type.Union([RetrieveResponse, replySchema(CredentialMetadata)]),
    async handle({ vault, context, params, query, disconnectSignal }) {
      const path = parsePath(params.path);
      if (query.view !== undefined) {
        if (query.version !== undefined) throw invalidRequest('version', 'must not be given with view=metadata');
        if (query.ttl !== undefined) throw invalidRequest('ttl', 'must not be given with view=metadata');
        const { credential, versions } = await readCredentialMetadata(vault, context, path);
        return {
          data: CredentialMetadata.toReply({ ...credential, versions }),
          tagged: CredentialState.toReply(credential),
        };
      }
      const version = query.version ?? null;
      const ttlSeconds = query.ttl === undefined ? null : parseTtl(query.ttl, 'ttl');
      const wanted = { path, version, ttlSeconds };
      const { value, leaseId, expiresAt } = await retrieveCredential(vault, context, wanted, disconnectSignal);
      return { data: { path, value: value.reveal(), lease_id: leaseId, expires_at: toTimestamp(expiresAt) } };
    },
  }),
  route({
    id: 'storeCredential',
    method: 'POST',
    path: '/api/v1/credentials',
    summary: 'Store a value: a new credential, or a new version. If-None-Match: * rejects a path that exists.',
    permission: 'credential.store',
    status: 201,
    body: StoreRequest,
    headers: { 'If-None-Match': StringEnum(['*'], { description: 'Rejects a path that exists with 409.' }) },
    data: replySchema(StoredCredential),
    acceptsIdempotencyKey: true,
    async handle({ vault, context, body, ifNoneMatch }) {
      if (ifNoneMatch !== undefined && ifNoneMatch.trim() !== '*') throw invalidRequest('If-None-Match', 'must be *');
      const credential = await storeCredential(vault, context, {
        path: parsePath(body.path),
        value: parseValue(body.value),
        type: body.type === undefined ? undefined : parseCredentialType(body.type),
        description: body.description === undefined ? undefined : parseDescription(body.description),
        onlyIfNew: ifNoneMatch !== undefined,
      });
      const headers = { 'leasehold-version': String(credential.version) };
      return { data: StoredCredential.toReply(credential), headers };
    },
  }),
  route({
    id: 'deleteCredential',
    method: 'DELETE',
    path: '/api/v1/credentials/{path}',
    summary: 'Delete a credential with its versions, and revoke its leases.',
    permission: 'credential.delete',
    params: { path: Path },
    represent: CredentialState.toReply,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(remove(context, parsePath(params.path)));
      return null;
    },
  }),
];
