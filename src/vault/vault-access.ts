/** The interface to a vault that opens and closes while the service runs. */

import type { Context } from '../core/operation.ts';
import type { Secret } from './credentials/credential.ts';
import type { KeySlot } from './keys/keyset.ts';

/** A slot that a person can open, with what a command needs to compute its secret. */
export type UnlockableSlot = Pick<KeySlot, 'name' | 'kind' | 'parameters'>;

export interface Unlocking {
  /** `rolled_back`: unlocked, and the log has lost entries. */
  readonly status: 'ok' | 'locked' | 'rolled_back';
  /** The numbers of shares; null for another kind of secret. */
  readonly shares: { readonly given: number; readonly needed: number } | null;
}

export interface VaultAccess {
  /** @throws INVALID_REQUEST if the vault is not locked */
  attendedSlots(): Promise<readonly UnlockableSlot[]>;
  /**
   * `secret` is base64 of the 32 bytes of a slot, or a share. @throws INVALID_REQUEST for a malformed or wrong one,
   * RATE_LIMITED after too many wrong ones
   */
  unlock(secret: Secret): Promise<Unlocking>;
  /** What the log has lost, which the operator has not accepted; null if nothing. @throws VAULT_LOCKED */
  loss(): string | null;
  /**
   * Opens the vault again with the loss of log entries accepted, and records that. Does nothing if nothing is lost.
   * @throws VAULT_LOCKED; UNAVAILABLE if it cannot be opened again: then nothing is accepted
   */
  acceptRollback(context: Context): Promise<void>;
  /**
   * Resolves when the entry is on disk and no later request is served. @throws UNAVAILABLE if the lock could not be
   * recorded: the vault is locked then too
   */
  lock(context: Context): Promise<void>;
  /** Whether the storage of the open vault failed, so that only a restart helps. */
  hasFailed(): boolean;
}
