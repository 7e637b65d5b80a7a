/** Rows of the route table: operators. SOURCE: docs/operators.md. */

import { Type } from 'typebox';
import { OperatorName, PasskeyId } from '../../api/fields.ts';
import { OperatorReplacement, OperatorRequest, OperatorRotation, PageQuery } from '../../api/requests.ts';
import { Operator } from '../../api/responses.ts';
import { OneTimeCode } from '../../api/sign-in.ts';
import { type OperatorName as Name, parseDescription, parseOperatorName } from '../../core/names.ts';
import { toTimestamp } from '../../engine/field.ts';
import { parsePasskeyId, parseRoles } from '../../vault/operators/operator.ts';
import { addOperator, rotateOperatorKey, toIdentity } from '../../vault/operators/operator-keys.ts';
import {
  listOperators,
  readOperator,
  removeOperator,
  replaceOperator,
} from '../../vault/operators/operator-operations.ts';
import { removePasskey } from '../../vault/operators/passkey-operations.ts';
import { invite } from '../../vault/operators/passkeys.ts';
import { sliceListing } from '../../vault/paging.ts';
import { streamList, toOptionalPage } from '../lists.ts';
import { type Route, route } from '../route.ts';
import { toOperatorResponse } from '../serialize.ts';

const params = { name: OperatorName };
const nameIn = (values: Readonly<Record<string, string>>): Name => parseOperatorName(values['name'] ?? '');

export const operatorRoutes: readonly Route[] = [
  route({
    id: 'listOperators',
    method: 'GET',
    path: '/api/v1/operators',
    summary: 'List operators.',
    permission: 'operator.list',
    query: PageQuery,
    data: Type.Array(Operator),
    meta: 'paged',
    async handle({ vault, context, query }) {
      const operators = await vault.ledger.read(listOperators(context));
      return streamList(sliceListing(operators, toOptionalPage(query)), toOperatorResponse);
    },
  }),
  route({
    id: 'addOperator',
    method: 'POST',
    path: '/api/v1/operators',
    summary: 'Add an operator with its roles, and how it logs in.',
    permission: 'operator.add',
    status: 201,
    body: OperatorRequest,
    data: Operator,
    acceptsIdempotencyKey: true,
    async handle({ vault, context, body }) {
      const operator = await addOperator(vault, context, {
        name: parseOperatorName(body.name),
        description: parseDescription(body.description ?? ''),
        roles: parseRoles(body.roles),
        publicKey: body.public_key ?? null,
        identity: body.identity ?? null,
      });
      return { data: toOperatorResponse(operator) };
    },
  }),
  route({
    id: 'readOperator',
    method: 'GET',
    path: '/api/v1/operators/{name}',
    summary: 'Read an operator.',
    params,
    permission: 'operator.read',
    data: Operator,
    represent: toOperatorResponse,
    async handle({ vault, context, params }) {
      return { data: toOperatorResponse(await vault.ledger.read(readOperator(context, nameIn(params)))) };
    },
  }),
  route({
    id: 'replaceOperator',
    method: 'PUT',
    path: '/api/v1/operators/{name}',
    summary: "Replace an operator's roles, description and identity.",
    params,
    permission: 'operator.replace',
    body: OperatorReplacement,
    data: Operator,
    represent: toOperatorResponse,
    async handle({ vault, context, params, body }) {
      const operation = replaceOperator(context, nameIn(params), {
        description: parseDescription(body.description ?? ''),
        roles: parseRoles(body.roles),
        ...(body.identity === undefined
          ? {}
          : { identity: body.identity === null ? null : toIdentity(vault, body.identity) }),
      });
      return { data: toOperatorResponse(await vault.ledger.submit(operation)) };
    },
  }),
  route({
    id: 'rotateOperatorKey',
    method: 'POST',
    path: '/api/v1/operators/{name}/rotate',
    summary: "Replace an operator's key; its sessions and leases end immediately.",
    params,
    permission: 'operator.rotate',
    body: OperatorRotation,
    data: Operator,
    async handle({ vault, context, params, body }) {
      const operator = await rotateOperatorKey(vault, context, nameIn(params), body.public_key);
      return { data: toOperatorResponse(operator) };
    },
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
      const { code, expiresAt } = await invite(vault, context, nameIn(params));
      return { data: { code, expires_at: toTimestamp(expiresAt) } };
    },
  }),
  route({
    id: 'removePasskey',
    method: 'DELETE',
    path: '/api/v1/operators/{name}/passkeys/{id}',
    summary: "Remove an operator's passkey; its sessions and leases end immediately. Its own, or as an admin.",
    params: { name: OperatorName, id: PasskeyId },
    permission: 'operator.passkey_remove',
    async handle({ vault, context, params }) {
      await vault.ledger.submit(removePasskey(context, nameIn(params), parsePasskeyId(params['id'] ?? '')));
      return null;
    },
  }),
  route({
    id: 'removeOperator',
    method: 'DELETE',
    path: '/api/v1/operators/{name}',
    summary: 'Remove an operator: its sessions and leases end immediately.',
    params,
    permission: 'operator.remove',
    represent: toOperatorResponse,
    async handle({ vault, context, params }) {
      await vault.ledger.submit(removeOperator(context, nameIn(params)));
      return null;
    },
  }),
];
