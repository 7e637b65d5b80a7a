/**
 * The directories of agents' private keys: `agents/<name>/private_key.pem`, with the agent's immutable id in
 * `agent_id`. A key waits in `agents/.pending/<id>` until the log has its agent. SOURCE:
 * docs/formats.md.
 */
import { lstatSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Agent } from '../core/agent.ts';
import type { AgentId, AgentName, PublicKey } from '../core/names.ts';
import { publicKeyOfPem } from '../crypto/ed25519.ts';
import { checkPrivateFile, ensurePrivateDir, lstatOrNull, syncDir, writeNewFile } from '../platform/private-files.ts';
import type { AgentKey, AgentKeyStore } from '../vault/agent-key-store.ts';

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
    const staged = join(this.#pending, id);
    // ORDER: check before deleting anything. For a repeated request the first one has committed the key.
    if (lstatOrNull(staged) !== null) {
      // Names are unique, so an existing directory is left over from an earlier agent.
      rmSync(dir, { recursive: true, force: true });
      renameSync(staged, dir);
    }
    // WHY always: an earlier call may have renamed the directory and then failed to sync.
    syncDir(this.#root);
  }

  async settle(id: AgentId, name: AgentName, publicKey: PublicKey): Promise<void> {
    const staged = join(this.#pending, id, PRIVATE_KEY);
    const isStaged = lstatOrNull(staged) !== null;
    if (isStaged && publicKeyOfPem(readFileSync(staged, 'latin1')) !== publicKey) await this.abort(id);
    else await this.commit(id, name);
  }

  async abort(id: AgentId): Promise<void> {
    rmSync(join(this.#pending, id), { recursive: true, force: true });
  }

  async remove(id: AgentId, name: AgentName): Promise<void> {
    const removed = join(this.#pending, id);
    rmSync(removed, { recursive: true, force: true });
    if (this.#idOf(name) !== id) return;
    // ORDER: rename, then delete: after a crash in between the next start deletes the pending directory.
    renameSync(join(this.#root, name), removed);
    syncDir(this.#root);
    rmSync(removed, { recursive: true, force: true });
  }

  async readAll(): Promise<AgentKey[]> {
    const found: AgentKey[] = [];
    // ORDER: staged keys first. One that is committed meanwhile is then found in its agent's directory.
    for (const root of [this.#pending, this.#root]) {
      for (const entry of await readdir(root, { withFileTypes: true })) {
        if (!entry.isDirectory() || entry.name === PENDING) continue;
        const files = [AGENT_ID, PRIVATE_KEY].map((file) => readFile(join(root, entry.name, file), 'latin1'));
        const [id, privateKeyPem] = await Promise.all(files).catch(ignoreMissing);
        const publicKey = privateKeyPem === undefined ? null : publicKeyOfPem(privateKeyPem);
        if (id === undefined || privateKeyPem === undefined || publicKey === null) continue;
        found.push({ id: id.trim() as AgentId, publicKey, privateKeyPem });
      }
    }
    return found;
  }

  /**
   * Recovers from a crash: commits staged keys of registered agents and deletes the others; deletes the directories of
   * deregistered agents. Leaves every other entry unchanged. @throws StartupError for links
   */
  async recover(registered: readonly Agent[], isDeregistered: (id: AgentId) => Promise<boolean>): Promise<void> {
    const agentsById = new Map(registered.map((agent) => [agent.id, agent]));
    for (const id of readdirSync(this.#pending) as AgentId[]) {
      const agent = agentsById.get(id);
      if (agent === undefined) await this.abort(id);
      else await this.settle(id, agent.name, agent.publicKey);
    }
    for (const name of readdirSync(this.#root) as AgentName[]) {
      if (name === PENDING) continue;
      this.#makePrivate(join(this.#root, name));
      const id = this.#idOf(name);
      if (id !== null && !agentsById.has(id) && (await isDeregistered(id))) await this.remove(id, name);
    }
  }

  /** Restricts an agent's directory and its files to the owner. @throws StartupError for links */
  #makePrivate(dir: string): void {
    if (lstatSync(dir).isFile()) {
      checkPrivateFile(dir);
      return;
    }
    ensurePrivateDir(dir);
    for (const file of [PRIVATE_KEY, AGENT_ID]) checkPrivateFile(join(dir, file));
  }

  /** The id of the directory's agent; null without a directory or an id. */
  #idOf(name: AgentName): AgentId | null {
    const dir = join(this.#root, name);
    const file = join(dir, AGENT_ID);
    // WHY not `existsSync`: it reports every error as a missing file.
    if (lstatOrNull(dir)?.isDirectory() !== true || lstatOrNull(file) === null) return null;
    return readFileSync(file, 'latin1').trim() as AgentId;
  }
}

/** Its agent was deregistered meanwhile, or the directory is another program's. */
function ignoreMissing(error: NodeJS.ErrnoException): readonly string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
