/**
 * Key slots and the rotation of keys. Only the administrator may call them; each leaves an entry. SOURCE: docs/keys.md.
 */

import type { BatchState } from '../../core/batch-state.ts';
import type { Change } from '../../core/change.ts';
import { SERVICE } from '../../core/names.ts';
import { type Context, denied, type Operation, operation, succeeded } from '../../core/operation.ts';
import type { EventType } from '../../core/permissions.ts';
import { draftEntry } from '../audit/audit-entry.ts';
import type { Secret } from '../credentials/credential.ts';
import { KeySlot, type KeysetEdit, type SlotId, type SlotName } from './keyset.ts';

const resourceOf = (name: SlotName): string => `key:slot:${name}`;
const READS = { keySlots: true } as const;

export function listKeySlots(context: Context): Operation<readonly KeySlot[]> {
  const spec = { context, permission: 'key.slot_list', resource: '*', reads: READS } as const;
  return operation<readonly KeySlot[]>(spec, ({ state }) => succeeded(state.keySlots(), null));
}

export function addKeySlot(context: Context, slot: KeySlot): Operation<KeySlot> {
  const resource = resourceOf(slot.name);
  const spec = { context, permission: 'key.slot_add', resource, reads: READS } as const;
  return operation<KeySlot>(spec, (input) => {
    const { state, entry } = input;
    if (state.keySlots().length >= KeySlot.maxRows) return denied(input, { code: 'too_many_slots' });
    if (state.keySlots().some(({ name }) => name === slot.name))
      return denied(input, { code: 'name_taken', of: 'key slot' });
    // WHY: a share names its slot by the group.
    const { group } = slot.parameters;
    if (group !== undefined && state.keySlots().some(({ parameters }) => parameters['group'] === group))
      return denied(input, { code: 'slot_group_taken' });
    return succeeded(slot, entry('allowed', { reason: slot.kind }), [
      { kind: 'editKeyset', edit: { kind: 'addSlot', id: slot.id } },
      { kind: 'putKeySlot', slot },
    ]);
  });
}

export function removeKeySlot(context: Context, name: SlotName): Operation<null> {
  const resource = resourceOf(name);
  const spec = { context, permission: 'key.slot_remove', resource, reads: READS } as const;
  return operation<null>(spec, (input) => {
    const { state, entry } = input;
    const slots = state.keySlots();
    const slot = slots.find((each) => each.name === name) ?? lostSlot(state, name);
    if (slot === undefined) return denied(input, { code: 'key_slot_not_found' });
    if (slots.every((each) => each === slot)) return denied(input, { code: 'last_key_slot' });
    return succeeded(null, entry('allowed', { reason: slot.kind }), [
      { kind: 'editKeyset', edit: { kind: 'removeSlot', id: slot.id } },
      { kind: 'removeKeySlot', id: slot.id },
    ]);
  });
}

/** A slot whose row was altered has no name that could be believed, so it is removed by its id. */
function lostSlot(state: BatchState, text: string): { readonly id: SlotId; readonly kind: string } | undefined {
  const id = state.lostKeySlots().find((each) => each === text);
  return id === undefined ? undefined : { id, kind: 'its row was altered' };
}

/** Records a test, which the server made before. `problem` is null if the slot opens the vault. */
export function testKeySlot(context: Context, name: SlotName, problem: string | null): Operation<boolean> {
  const resource = resourceOf(name);
  const spec = { context, permission: 'key.slot_test', resource, reads: READS } as const;
  return operation<boolean>(spec, (input) => {
    const { state, entry } = input;
    if (!state.keySlots().some((each) => each.name === name)) return denied(input, { code: 'key_slot_not_found' });
    return succeeded(problem === null, entry(problem === null ? 'allowed' : { code: 'key_slot_unusable', problem }));
  });
}

/** A new key encrypts the next values; the previous ones are re-encrypted in the background. */
export function rotateDataKey(context: Context, key: Secret): Operation<null> {
  const spec = { context, permission: 'key.rotate', resource: 'key:data' } as const;
  return operation<null>(spec, ({ moment, entry }) => succeeded(null, entry('allowed'), [addDataKey(key, moment.now)]));
}

/** A new root key, wrapped for every slot. */
export function rotateRootKey(context: Context, root: Secret): Operation<null> {
  const spec = {
    context,
    permission: 'key.rotate_root',
    resource: 'key:root',
    reads: READS,
  } as const;
  return operation<null>(spec, (input) => {
    const { state, entry } = input;
    // WHY: a slot that was not wrapped again would no longer open anything.
    if (state.lostKeySlots().length > 0) return denied(input, { code: 'key_slot_altered' });
    return succeeded(null, entry('allowed'), [
      { kind: 'editKeyset', edit: { kind: 'replaceRoot', root } },
      ...state.keySlots().map((slot) => ({ kind: 'putKeySlot' as const, slot })),
    ]);
  });
}

/** This entry is the last one under the former key; the ledger adds its MAC under the new one. */
export function rotateAuditKey(context: Context, key: Secret): Operation<null> {
  const spec = { context, permission: 'key.rotate_audit', resource: 'key:audit' } as const;
  return operation<null>(spec, ({ moment, entry }) =>
    succeeded(null, entry('allowed'), [
      { kind: 'editKeyset', edit: { kind: 'addAuditKey', key, fromSeq: moment.seq + 1 } },
    ]),
  );
}

/** Ends every use, and locks the vault when the entry is on disk. */
export function lockVault(context: Context): Operation<null> {
  const spec = { context, permission: 'service.lock', resource: '*' } as const;
  return operation<null>(spec, ({ entry }) => succeeded(null, entry('allowed')));
}

const addDataKey = (key: Secret, createdAt: number): Change => ({
  kind: 'editKeyset',
  edit: { kind: 'addDataKey', key, createdAt },
});

/** The server's own rotation, before a data key has encrypted too many values. */
export function replaceUsedDataKey(key: Secret): Operation<null> {
  return byService('key.rotate', 'key:data', 'the key has encrypted many values', (now) => ({
    kind: 'addDataKey',
    key,
    createdAt: now,
  }));
}

export function retireDataKey(id: string): Operation<null> {
  return byService('key.retire', `key:data:${id}`, 'no value is encrypted under it', () => ({
    kind: 'removeDataKey',
    id,
  }));
}

function byService(
  eventType: EventType,
  resource: string,
  reason: string,
  editAt: (now: number) => KeysetEdit,
): Operation<null> {
  const draft = draftEntry({ eventType, agentName: SERVICE, resource, result: 'allowed', reason });
  return {
    reads: {},
    auth: { kind: 'service' },
    decide: (_known, { now }) => succeeded(null, draft, [{ kind: 'editKeyset', edit: editAt(now) }]),
  };
}
