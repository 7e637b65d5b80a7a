/** The port of a kind of slot whose secret the service can get without a person. One file for each kind. */
import type { SlotParameters, VaultId } from '../../core/keyset.ts';
import { errnoSuffix } from '../../platform/errno.ts';
import { StartupError } from '../../platform/errors.ts';
import { readSecretBytes } from '../../platform/private-files.ts';
import type { NewSlotSecret } from '../../vault/slot-secrets.ts';

export interface SlotKindPort {
  /** `key` is what the administrator named. @throws SlotKindError */
  create(key: string | null, vaultId: VaultId): Promise<NewSlotSecret>;
  /** @throws SlotKindError */
  open(parameters: SlotParameters, vaultId: VaultId): Promise<Uint8Array>;
}

/** Why a kind has no secret, in one sentence for the operator, without its full stop and without what was sent. */
export class SlotKindError extends Error {}

/** The text of a file with one secret, which `what` describes. @throws SlotKindError */
export function readSlotFile(what: string, file: string): string {
  try {
    return readSecretBytes(file).toString('latin1');
  } catch (error) {
    const cause = error instanceof StartupError ? error.cause : error;
    const reason = cause === undefined ? 'is too long for a secret' : `cannot be read${errnoSuffix(cause)}`;
    throw new SlotKindError(`${what} ${reason}: ${file}`);
  }
}

/** The name of a key or a credential, from a request or from the database. @throws SlotKindError with the rule */
export function checkedKey(key: unknown, pattern: RegExp, rule: string): string {
  if (typeof key === 'string' && pattern.test(key)) return key;
  throw new SlotKindError(`key: ${rule}`);
}
