/**
 * Ports of the vault: the files of agents' private keys, the secrets of key slots, and a provider of OpenID Connect.
 *
 * ORDER of key files: stage the key → commit the batch → commit the key → reply; and commit the batch → remove →
 * reply. A crash therefore leaves either a staged key, which the next startup commits or aborts, or a stray one, which
 * it removes.
 */
import type { AgentId, AgentName, PublicKey } from '../core/names.ts';
import type { Context } from '../core/operation.ts';
import type { Secret } from './credentials/credential.ts';
import type { KeySlot, SlotKind, SlotParameters, VaultId } from './keys/keyset.ts';
import type { IdentityClaims } from './operators/operator.ts';

export interface AgentKey {
  readonly id: AgentId;
  readonly publicKey: PublicKey;
  readonly privateKeyPem: string;
}

export interface AgentKeyStore {
  /** Writes the key to a staging file. The key is on disk when this resolves. */
  stage(id: AgentId, privateKeyPem: string): Promise<void>;
  /** Moves the staged key to its agent's directory and replaces a stray one. Does nothing if no key is staged. */
  commit(id: AgentId, name: AgentName): Promise<void>;
  /** Commits if the staged key belongs to `publicKey`, and aborts otherwise: a rotation may have failed. */
  settle(id: AgentId, name: AgentName, publicKey: PublicKey): Promise<void>;
  abort(id: AgentId): Promise<void>;
  /** Removes the agent's directory, if it belongs to `id`, and the staged key of `id`. */
  remove(id: AgentId, name: AgentName): Promise<void>;
  /** Every key, including staged and stray ones, for a backup: an agent may have several. */
  readAll(): Promise<AgentKey[]>;
}

export interface NewSlotSecret {
  /** 32 bytes. */
  readonly secret: Uint8Array;
  /** The input from which `open` computes the secret. */
  readonly parameters: SlotParameters;
}

/** The secret, or the problem in one sentence. */
export type SlotSecretResult = { readonly secret: Uint8Array } | { readonly problem: string };

export interface SlotSecrets {
  /**
   * A secret that `open` was verified to compute again. `key` names the key or the credential of the kind.
   * @throws INVALID_REQUEST with its rule, or the cause
   */
  create(kind: SlotKind, key: string | null, vaultId: VaultId): Promise<NewSlotSecret>;
  /** Never rejects. */
  open(slot: Pick<KeySlot, 'kind' | 'parameters'>, vaultId: VaultId): Promise<SlotSecretResult>;
}

/** The values to which a sign-in at the provider is bound. */
export interface ProviderRequest {
  readonly redirectUri: string;
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The provider, which may be out of reach at any time. */
export interface OidcClient {
  readonly issuer: string;
  /** The name of the provider on the sign-in page. */
  readonly label: string;
  /** The URL to which the browser is sent. @throws UNAVAILABLE */
  authorizationUrl(request: ProviderRequest): Promise<string>;
  /** Redeems the code. Null if the provider or a check rejects it. @throws UNAVAILABLE */
  redeem(request: ProviderRequest, code: string): Promise<IdentityClaims | null>;
}

/** A slot that an operator can open, with the parameters from which a command computes its secret. */
export type UnlockableSlot = Pick<KeySlot, 'name' | 'kind' | 'parameters'>;

export interface Unlocking {
  /** `rolled_back`: unlocked, and the audit log has lost entries. */
  readonly status: 'ok' | 'locked' | 'rolled_back';
  /** The numbers of shares; null for another kind of secret. */
  readonly shares: { readonly given: number; readonly needed: number } | null;
}

/**
 * What the server does in recovery mode, which lasts until an operator accepts the loss of entries of the audit log.
 */
export const RECOVERY_MODE = 'it serves health checks, and reading, verifying and exporting the audit log';

/** The interface to a vault that opens and closes while the server runs. */
export interface VaultAccess {
  /** @throws INVALID_REQUEST if the vault is not locked */
  attendedSlots(): Promise<readonly UnlockableSlot[]>;
  /**
   * `secret` is base64 of the 32 bytes of a slot, or a share. @throws INVALID_REQUEST for a malformed or wrong one,
   * RATE_LIMITED after too many wrong ones
   */
  unlock(secret: Secret): Promise<Unlocking>;
  /**
   * The entries that the audit log has lost, which the operator has not accepted; null if none. @throws VAULT_LOCKED
   */
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
