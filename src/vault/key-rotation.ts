/** Rotates the data, root and audit keys on request, and the signing key after a loss of entries. */

import type { Change } from '../core/change.ts';
import { Secret } from '../core/credential.ts';
import type { Context } from '../core/operation.ts';
import { rotateAuditKey, rotateDataKey, rotateRootKey } from '../core/operations/keys.ts';
import { newKey } from '../crypto/keyset.ts';
import type { Vault } from './vault.ts';

const OPERATIONS = { data: rotateDataKey, root: rotateRootKey, audit: rotateAuditKey };

export async function rotateKey(vault: Vault, context: Context, which: keyof typeof OPERATIONS): Promise<void> {
  await vault.ledger.submit(OPERATIONS[which](context, new Secret(newKey())));
  if (which === 'data') vault.resealing.begin();
}

/** Signs the checkpoints from then on, for a log in which other entries may have been at the same places. */
export function newSigningKey(): Change {
  return { kind: 'editKeyset', edit: { kind: 'addSigningKey', seed: new Secret(newKey()) } };
}
