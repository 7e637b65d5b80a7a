/** Rows of the route table: operators. SOURCE: docs/operators.md. */
import { listOperators, readOperator, removeOperator } from '../../vault/operators/endpoints.ts';
import { KeyReplacement, NewOperator, Operator, OperatorReplacement, Passkey } from '../../vault/operators/operator.ts';
import { addOperator, rotateOperatorKey, toIdentity } from '../../vault/operators/operator-keys.ts';
import { replaceOperator } from '../../vault/operators/operator-operations.ts';
import { removePasskey } from '../../vault/operators/passkey-operations.ts';
import { invite } from '../../vault/operators/passkeys.ts';
import { OneTimeCode } from '../../vault/sessions/sign-in-operations.ts';
import { type Route, route, shapedRoute, toRoute } from '../route.ts';

const params = { name: Operator.fields.name };

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
  shapedRoute({
    id: 'replaceOperator',
    method: 'PUT',
    path: '/api/v1/operators/{name}',
    summary: "Replace an operator's roles, description and identity.",
    params,
    permission: 'operator.replace',
    body: OperatorReplacement,
    reply: Operator,
    represent: Operator.toReply,
    handle({ vault, context, params, body: { identity: given, ...change } }) {
      const identity = given === null ? {} : { identity: given === 'removed' ? null : toIdentity(vault, given) };
      return vault.ledger.submit(replaceOperator(context, params.name, { ...change, ...identity }));
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
    handle: ({ vault, context, params, body }) => rotateOperatorKey(vault, context, params.name, body.publicKey),
  }),
  shapedRoute({
    id: 'inviteOperator',
    method: 'POST',
    path: '/api/v1/operators/{name}/enrolment',
    summary: 'Make a code with which an operator registers a passkey, once within 24 hours.',
    params,
    permission: 'operator.invite',
    reply: OneTimeCode,
    handle: ({ vault, context, params }) => invite(vault, context, params.name),
  }),
  route({
    id: 'removePasskey',
    method: 'DELETE',
    path: '/api/v1/operators/{name}/passkeys/{id}',
    summary: "Remove an operator's passkey; its sessions and leases end immediately. Its own, or as an admin.",
    params: { ...params, id: Passkey.fields.id },
    permission: 'operator.passkey_remove',
    async handle({ vault, context, params }) {
      await vault.ledger.submit(removePasskey(context, params.name, params.id));
      return null;
    },
  }),
  toRoute(removeOperator),
];
