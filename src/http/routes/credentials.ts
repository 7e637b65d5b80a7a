/** Rows of the route table: credentials. SOURCE: docs/api.md, "Credentials"; docs/decisions.md, "Credentials". */
import { Type } from 'typebox';
import { StringEnum } from '../../api/fields.ts';
import { replySchema } from '../../api/resource-schemas.ts';
import { toOptionalPage } from '../../core/page.ts';
import { invalidRequest } from '../../engine/errors.ts';
import {
  CredentialMetadata,
  CredentialState,
  CredentialsQuery,
  ListedCredential,
  parseValue,
  RetrievedCredential,
  RetrieveQuery,
  StoredCredential,
  StoreRequest,
} from '../../vault/credentials/credential.ts';
import { remove } from '../../vault/credentials/credential-operations.ts';
import {
  listCredentials,
  readCredentialMetadata,
  retrieveCredential,
  storeCredential,
} from '../../vault/credentials/credentials.ts';
import { streamList } from '../lists.ts';
import { type Route, route } from '../route.ts';

const params = { path: StoredCredential.fields.path };

export const credentialRoutes: readonly Route[] = [
  route({
    id: 'listCredentials',
    method: 'GET',
    path: '/api/v1/credentials',
    summary: 'List credentials, without values. An agent sees the paths that its policies let it list.',
    permission: 'credential.list',
    query: CredentialsQuery,
    data: Type.Array(replySchema(ListedCredential)),
    meta: 'paged',
    async handle({ vault, context, query, listSignal }) {
      const listing = await listCredentials(vault, context, query, toOptionalPage(query), listSignal());
      return streamList(listing, ListedCredential.toReply);
    },
  }),
  route({
    id: 'retrieveCredential',
    method: 'GET',
    path: '/api/v1/credentials/{path}',
    summary: 'Retrieve a value and a lease; with view=metadata, read the credential without its value.',
    permission: 'credential.retrieve',
    params,
    query: RetrieveQuery,
    data: Type.Union([replySchema(RetrievedCredential), replySchema(CredentialMetadata)]),
    async handle({ vault, context, params: { path }, query: { view, ...wanted }, disconnectSignal }) {
      if (view !== null) {
        const { credential, versions } = await readCredentialMetadata(vault, context, path);
        return {
          data: CredentialMetadata.toReply({ ...credential, versions }),
          tagged: CredentialState.toReply(credential),
        };
      }
      const retrieved = await retrieveCredential(vault, context, { path, ...wanted }, disconnectSignal);
      return { data: RetrievedCredential.toReply({ ...retrieved, path, value: retrieved.value.reveal() }) };
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
        ...body,
        value: parseValue(body.value),
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
    params,
    represent: CredentialState.toReply,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(remove(context, params.path));
      return null;
    },
  }),
];
