/** Rows of the route table: key slots, rotation, and the locked vault. SOURCE: docs/keys.md. */

import { Type } from 'typebox';
import { replySchema } from '../../api/resource-schemas.ts';
import { Health, UnlockProgress } from '../../api/responses.ts';
import { ApiError } from '../../engine/errors.ts';
import { Secret } from '../../vault/credentials/credential.ts';
import { listKeySlots, removeKeySlot } from '../../vault/keys/key-operations.ts';
import { addSlot, rotateKey, testSlot } from '../../vault/keys/keys.ts';
import {
  AttendedSlot,
  KeySlot,
  KeySlotTest,
  KeySlotTestRequest,
  NewSlot,
  RotatedKey,
  RotateKeyRequest,
  UnlockRequest,
} from '../../vault/keys/keyset.ts';
import { type PublicCall, publicRoute, type Route, route, shapedRoute } from '../route.ts';

function assertLocal({ isLocal }: Pick<PublicCall, 'isLocal'>): void {
  if (isLocal) return;
  throw new ApiError('ACCESS_DENIED', 'The vault is unlocked over a Unix socket or from this machine only.');
}

const params = { name: KeySlot.fields.name };

export const keyRoutes: readonly Route[] = [
  route({
    id: 'listKeySlots',
    method: 'GET',
    path: '/api/v1/key/slots',
    summary: 'List the key slots. Any one of them opens the vault.',
    permission: 'key.slot_list',
    data: Type.Array(replySchema(KeySlot)),
    async handle({ vault, context }) {
      return { data: (await vault.ledger.read(listKeySlots(context))).map(KeySlot.toReply) };
    },
  }),
  shapedRoute({
    id: 'addKeySlot',
    method: 'POST',
    path: '/api/v1/key/slots',
    summary: 'Add a key slot.',
    permission: 'key.slot_add',
    status: 201,
    body: NewSlot,
    reply: KeySlot,
    handle: ({ vault, context, body }) => addSlot(vault, context, body),
  }),
  route({
    id: 'removeKeySlot',
    method: 'DELETE',
    path: '/api/v1/key/slots/{name}',
    summary: 'Remove a key slot, unless it is the last one.',
    params,
    permission: 'key.slot_remove',
    async handle({ vault, context, params }) {
      await vault.ledger.submit(removeKeySlot(context, params.name));
      return null;
    },
  }),
  shapedRoute({
    id: 'testKeySlot',
    method: 'POST',
    path: '/api/v1/key/slots/{name}/test',
    summary: 'Test whether a key slot opens the vault.',
    params,
    permission: 'key.slot_test',
    body: KeySlotTestRequest,
    reply: KeySlotTest,
    handle: ({ vault, context, params, body }) => testSlot(vault, context, params.name, body.publicKey),
  }),
  shapedRoute({
    id: 'rotateKey',
    method: 'POST',
    path: '/api/v1/key/rotate',
    summary: 'Replace the key that encrypts values, the root key, or the key of the audit log.',
    permission: 'key.rotate',
    body: RotateKeyRequest,
    reply: RotatedKey,
    async handle({ vault, context, body }) {
      await rotateKey(vault, context, body.key);
      return body;
    },
  }),
  route({
    id: 'lockVault',
    method: 'POST',
    path: '/api/v1/lock',
    summary: 'Lock the vault: brokered requests end, the server forgets the keys, and every later request is rejected.',
    permission: 'service.lock',
    data: Health,
    async handle({ vault, context }) {
      await vault.access.lock(context);
      return { data: { status: 'locked' } };
    },
  }),
  publicRoute({
    id: 'listAttendedSlots',
    method: 'GET',
    path: '/api/v1/unlock',
    summary:
      'The slots with which an operator can unlock the vault. Only while it is locked, and only from this machine.',
    data: Type.Array(replySchema(AttendedSlot)),
    isAlwaysServed: true,
    async handle(call) {
      assertLocal(call);
      return { data: await call.vault.access.attendedSlots() };
    },
  }),
  publicRoute({
    id: 'unlockVault',
    method: 'POST',
    path: '/api/v1/unlock',
    summary: 'Unlock the vault with the secret of a slot, or give one share of it. Only from this machine.',
    body: UnlockRequest,
    data: UnlockProgress,
    isAlwaysServed: true,
    async handle(call) {
      assertLocal(call);
      const { status, shares } = await call.vault.access.unlock(new Secret(call.body.secret));
      const progress = { shares_given: shares?.given ?? null, shares_needed: shares?.needed ?? null };
      return { data: { status, ...progress } };
    },
  }),
];
