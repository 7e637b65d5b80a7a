/**
 * The port to the files of agents' private keys. ORDER: prepare → commit → publish → reply, and commit → remove → reply, so that
 * a crash leaves either a pending key that start-up finishes or discards, or a stray one that it removes.
 */
import type { AgentId, AgentName } from '../core/names.ts';

export interface AgentKeyStore {
  /** Writes the key where nobody reads it yet; on disk when it resolves. */
  stage(id: AgentId, privateKeyPem: string): Promise<void>;
  /** Moves the prepared key to its agent's directory; replaces a stray one. Where none is prepared, nothing is touched. */
  commit(id: AgentId, name: AgentName): Promise<void>;
  /** Removes a prepared key. */
  abort(id: AgentId): Promise<void>;
  /** Removes the agent's directory if it is that of `id`, and what is still prepared for it. */
  remove(id: AgentId, name: AgentName): Promise<void>;
}
