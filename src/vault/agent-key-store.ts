/**
 * The interface to the files of agents' private keys. ORDER: stage the key → commit the batch → commit the key →
 * reply, and commit the batch → remove → reply, so that a crash leaves either a staged key, which the next start
 * commits or aborts, or a stray one, which it removes.
 */
import type { AgentId, AgentName, PublicKey } from '../core/names.ts';

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
  /** As `commit` if the staged key is that of `publicKey`, otherwise as `abort`: a rotation may have failed. */
  settle(id: AgentId, name: AgentName, publicKey: PublicKey): Promise<void>;
  /** Removes a staged key. */
  abort(id: AgentId): Promise<void>;
  /** Removes the agent's directory, if it belongs to `id`, and the staged key of `id`. */
  remove(id: AgentId, name: AgentName): Promise<void>;
  /** Every key, also staged ones and stray ones, for a backup: an agent may have several. */
  readAll(): Promise<AgentKey[]>;
}
