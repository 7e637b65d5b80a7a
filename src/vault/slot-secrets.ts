/** The interface to the kinds of slots whose secret the service itself can get, without a person. */
import type { KeySlot, SlotKind, SlotParameters, VaultId } from '../core/keyset.ts';

export interface NewSlotSecret {
  /** 32 bytes. */
  readonly secret: Uint8Array;
  /** What `open` needs to get it again. */
  readonly parameters: SlotParameters;
}

/** The secret, or in one sentence why it cannot be got. */
export type SlotSecretResult = { readonly secret: Uint8Array } | { readonly problem: string };

export interface SlotSecrets {
  /**
   * A secret that `open` gets again, as was verified. `key` names the key or the credential of the kind.
   * @throws INVALID_REQUEST with its rule, or the cause
   */
  create(kind: SlotKind, key: string | null, vaultId: VaultId): Promise<NewSlotSecret>;
  /** Never rejects. */
  open(slot: Pick<KeySlot, 'kind' | 'parameters'>, vaultId: VaultId): Promise<SlotSecretResult>;
}
