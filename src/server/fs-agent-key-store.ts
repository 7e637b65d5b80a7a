/**
 * The directories of agents' private keys: `agents/<name>/private_key.pem`, with the agent's immutable id beside it.
 * A key waits in `agents/.pending/<id>` until its agent is in the log. SOURCE: interface 2.5; design, "Key files".
 */
import { lstatSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent } from '../core/agent.ts';
import type { AgentId, AgentName } from '../core/names.ts';
import { checkPrivateFile, ensurePrivateDir, lstatOrNull, syncDir, writeNewFile } from '../platform/private-files.ts';
import type { AgentKeyStore } from '../vault/agent-key-store.ts';

const PRIVATE_KEY = 'private_key.pem';
const AGENT_ID = 'agent_id';
const PENDING = '.pending';

export class FsAgentKeyStore implements AgentKeyStore {
  readonly #root: string;
  readonly #pending: string;

  constructor(agentsDir: string) {
    this.#root = agentsDir;
    this.#pending = join(agentsDir, PENDING);
    ensurePrivateDir(this.#root);
    ensurePrivateDir(this.#pending);
  }

  async stage(id: AgentId, privateKeyPem: string): Promise<void> {
    const dir = join(this.#pending, id);
    ensurePrivateDir(dir);
    writeNewFile(join(dir, PRIVATE_KEY), privateKeyPem);
    writeNewFile(join(dir, AGENT_ID), `${id}\n`);
    syncDir(dir);
  }

  async commit(id: AgentId, name: AgentName): Promise<void> {
    const dir = join(this.#root, name);
    const prepared = join(this.#pending, id);
    // ORDER: before anything is removed. Of a request that is repeated the key was published by the first one.
    if (lstatOrNull(prepared) !== null) {
      // Names are unique, so that what stands here is an earlier agent's stray.
      rmSync(dir, { recursive: true, force: true });
      renameSync(prepared, dir);
    }
    // WHY always: the rename may be there already, and the sync after it have failed.
    syncDir(this.#root);
  }

  async abort(id: AgentId): Promise<void> {
    rmSync(join(this.#pending, id), { recursive: true, force: true });
  }

  async remove(id: AgentId, name: AgentName): Promise<void> {
    const removed = join(this.#pending, id);
    rmSync(removed, { recursive: true, force: true });
    if (this.#idOf(name) !== id) return;
    // ORDER: out of sight in one step, then away; a crash between leaves it where start-up discards what is pending.
    renameSync(join(this.#root, name), removed);
    syncDir(this.#root);
    rmSync(removed, { recursive: true, force: true });
  }

  /**
   * Finishes or undoes what a crash left: pending keys of registered agents are published, others removed; the directory of a
   * deregistered agent is removed. What is not known to be either is left alone. @throws StartupError for links
   */
  async recover(registered: readonly Agent[], isDeregistered: (id: AgentId) => Promise<boolean>): Promise<void> {
    const namesById = new Map(registered.map(({ id, name }) => [id, name]));
    for (const id of readdirSync(this.#pending) as AgentId[]) {
      const name = namesById.get(id);
      if (name === undefined) await this.abort(id);
      else await this.commit(id, name);
    }
    for (const name of readdirSync(this.#root) as AgentName[]) {
      if (name === PENDING) continue;
      this.#makePrivate(join(this.#root, name));
      const id = this.#idOf(name);
      if (id !== null && !namesById.has(id) && (await isDeregistered(id))) await this.remove(id, name);
    }
  }

  /** What is in an agent's directory is ours, and private. @throws StartupError for links */
  #makePrivate(dir: string): void {
    if (lstatSync(dir).isFile()) {
      checkPrivateFile(dir);
      return;
    }
    ensurePrivateDir(dir);
    for (const file of [PRIVATE_KEY, AGENT_ID]) checkPrivateFile(join(dir, file));
  }

  /** Whose directory it is; null where it is not there, or not ours. */
  #idOf(name: AgentName): AgentId | null {
    const dir = join(this.#root, name);
    const file = join(dir, AGENT_ID);
    // WHY not `existsSync`: it takes every failure for a file that is missing.
    if (lstatOrNull(dir)?.isDirectory() !== true || lstatOrNull(file) === null) return null;
    return readFileSync(file, 'latin1').trim() as AgentId;
  }
}
