/** Rows of the route table: operators. SOURCE: docs/operators.md. */
import { PasskeyId } from '../../api/fields.ts';
import { OperatorReplacement } from '../../api/requests.ts';
import { keySchema, replySchema } from '../../api/resource-schemas.ts';
import { OneTimeCode } from '../../api/sign-in.ts';
import { parseDescription } from '../../core/names.ts';
import { parseField } from '../../engine/field.ts';
import { toTimestamp } from '../../engine/timestamp.ts';
import { listOperators, readOperator, removeOperator } from '../../vault/operators/endpoints.ts';
import {
  GivenIdentity,
  KeyReplacement,
  NewOperator,
  Operator,
  type ProviderIdentity,
  parsePasskeyId,
  parseRoles,
} from '../../vault/operators/operator.ts';
import { addOperator, rotateOperatorKey, toIdentity } from '../../vault/operators/operator-keys.ts';
import { replaceOperator } from '../../vault/operators/operator-operations.ts';
import { removePasskey } from '../../vault/operators/passkey-operations.ts';
import { invite } from '../../vault/operators/passkeys.ts';
import type { Vault } from '../../vault/vault.ts';
import { type Route, route, shapedRoute, toRoute } from '../route.ts';

function identityIn(vault: Vault, given: object | null): ProviderIdentity | null {
  return given === null ? null : toIdentity(vault, parseField(GivenIdentity, given, 'identity'));
}

const params = { name: keySchema(Operator) };

export const operatorRoutes: readonly Route[] = [
  toRoute(listOperators),
  shapedRoute({
    id: 'addOperator',
    method: 'POST',
    path: '/api/v1/operators',
    summary: 'Add an operator with its roles, and how it logs in.',
    permission: 'operator.add',
    status: 201,
    acceptsIdempotencyKey: true,
    body: NewOperator,
    reply: Operator,
    handle: ({ vault, context, body }) => addOperator(vault, context, body),
  }),
  toRoute(readOperator),
  route({
    id: 'replaceOperator',
    method: 'PUT',
    path: '/api/v1/operators/{name}',
    summary: "Replace an operator's roles, description and identity.",
    params,
    permission: 'operator.replace',
    body: OperatorReplacement,
    data: replySchema(Operator),
    represent: Operator.toReply,
    async handle({ vault, context, params, body }) {
      const operation = replaceOperator(context, Operator.parseKey(params.name), {
        description: parseDescription(body.description ?? ''),
        roles: parseRoles(body.roles),
        ...(body.identity === undefined ? {} : { identity: identityIn(vault, body.identity) }),
      });
      return { data: Operator.toReply(await vault.ledger.submit(operation)) };
    },
  }),
  shapedRoute({
    id: 'rotateOperatorKey',
    method: 'POST',
    path: '/api/v1/operators/{name}/rotate',
    summary: "Replace an operator's key; its sessions and leases end immediately.",
    params,
    permission: 'operator.rotate',
    body: KeyReplacement,
    reply: Operator,
    handle: ({ vault, context, params, body }) =>
      rotateOperatorKey(vault, context, Operator.parseKey(params.name), body.publicKey),
  }),
  route({
    id: 'inviteOperator',
    method: 'POST',
    path: '/api/v1/operators/{name}/enrolment',
    summary: 'Make a code with which an operator registers a passkey, once within 24 hours.',
    params,
    permission: 'operator.invite',
    data: OneTimeCode,
    async handle({ vault, context, params }) {
      const { code, expiresAt } = await invite(vault, context, Operator.parseKey(params.name));
      return { data: { code, expires_at: toTimestamp(expiresAt) } };
    },
  }),
  route({
    id: 'removePasskey',
    method: 'DELETE',
    path: '/api/v1/operators/{name}/passkeys/{id}',
    summary: "Remove an operator's passkey; its sessions and leases end immediately. Its own, or as an admin.",
    params: { ...params, id: PasskeyId },
    permission: 'operator.passkey_remove',
    async handle({ vault, context, params }) {
      await vault.ledger.submit(removePasskey(context, Operator.parseKey(params.name), parsePasskeyId(params.id)));
      return null;
    },
  }),
  toRoute(removeOperator),
];
