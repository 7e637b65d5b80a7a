/**
 * Rotates the data, root, audit and signing keys, and adds, tests and removes key slots. A secret of an attended slot
 * never reaches the server, only its public key.
 */
import type { Change } from '../../core/change.ts';
import { authorize, type Context } from '../../core/operation.ts';
import { isSlotPublicKey, parsePassphraseParameters, slotPrivateKey, slotPublicKey } from '../../crypto/key-slots.ts';
import { newKey } from '../../crypto/keyset-encryption.ts';
import { newId } from '../../crypto/primitives.ts';
import { assertShareParameters } from '../../crypto/shares.ts';
import { invalidRequest } from '../../engine/errors.ts';
import { Secret } from '../credentials/credential.ts';
import type { Vault } from '../vault.ts';
import {
  addKeySlot,
  listKeySlots,
  rotateAuditKey,
  rotateDataKey,
  rotateRootKey,
  testKeySlot,
} from './key-operations.ts';
import { isAttended, type KeySlot, type NewSlot, type SlotId, type SlotName } from './keyset.ts';

export async function addSlot(vault: Vault, context: Context, request: NewSlot): Promise<KeySlot> {
  const { ledger, keys, clock, slotSecrets } = vault;
  const { name, kind } = request;
  // ORDER: a caller without the permission causes no call to another service.
  await ledger.read(authorize(context, 'key.slot_add'));
  const { publicKey, parameters } = isAttended(kind)
    ? attendedSlot(request)
    : await slotSecrets.create(kind, request.key, keys.vaultId).then(({ secret, parameters }) => ({
        publicKey: slotPublicKey(slotPrivateKey(secret)),
        parameters,
      }));
  const slot: KeySlot = { id: newId() as SlotId, name, kind, parameters, publicKey, createdAt: clock.now() };
  return ledger.submit(addKeySlot(context, slot));
}

/** @throws INVALID_REQUEST for a slot whose secret no command could compute again */
function attendedSlot({ kind, publicKey, parameters, key }: NewSlot): Pick<KeySlot, 'publicKey' | 'parameters'> {
  if (key !== null) throw invalidRequest('key', 'is not allowed for this kind');
  if (publicKey === null || !isSlotPublicKey(publicKey)) {
    throw invalidRequest('public_key', 'must be the base64 of an X25519 public key of 32 bytes');
  }
  if (kind === 'passphrase') parsePassphraseParameters(parameters);
  if (kind === 'shamir') assertShareParameters(parameters);
  return { publicKey, parameters };
}

/**
 * Whether the slot opens the vault. `publicKey` is what a command computed from the secret of an attended slot; the
 * server gets the secret of another kind itself.
 */
export async function testSlot(
  vault: Vault,
  context: Context,
  name: SlotName,
  publicKey: string | null,
): Promise<{ readonly opens: boolean; readonly problem: string | null }> {
  const slots = await vault.ledger.read(listKeySlots(context));
  const slot = slots.find((each) => each.name === name);
  const problem = slot === undefined ? 'no key slot has this name' : await findProblem(vault, slot, publicKey);
  return { opens: await vault.ledger.submit(testKeySlot(context, name, problem)), problem };
}

async function findProblem({ keys, slotSecrets }: Vault, slot: KeySlot, given: string | null): Promise<string | null> {
  if (isAttended(slot.kind)) {
    if (given === null) throw invalidRequest('public_key', 'must be given for a slot of this kind');
    return given === slot.publicKey ? null : 'the secret is not that of the slot';
  }
  const found = await slotSecrets.open(slot, keys.vaultId);
  if ('problem' in found) return found.problem;
  return slotPublicKey(slotPrivateKey(found.secret)) === slot.publicKey ? null : 'the secret is not that of the slot';
}

const OPERATIONS = { data: rotateDataKey, root: rotateRootKey, audit: rotateAuditKey };

export async function rotateKey(vault: Vault, context: Context, which: keyof typeof OPERATIONS): Promise<void> {
  await vault.ledger.submit(OPERATIONS[which](context, new Secret(newKey())));
  if (which === 'data') vault.reencryption.begin();
}

/** Replaces the key that signs checkpoints, because other entries may have been at the same places of the audit log. */
export function newSigningKey(): Change {
  return { kind: 'editKeyset', edit: { kind: 'addSigningKey', seed: new Secret(newKey()) } };
}
