/**
 * The directories of agents' private keys: `agents/<name>/private_key.pem`, with the agent's immutable id in
 * `agent_id`. A key is staged in `agents/.pending/<id>` until its agent is in the audit log. INVARIANT: names and ids
 * are checked where they become paths, and only files that this class writes are deleted. SOURCE: docs/formats.md.
 */
import { lstatSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type AgentId, type AgentName, type PublicKey, parseAgentName, UUID } from '../core/names.ts';
import { publicKeyOfPem } from '../crypto/signatures.ts';
import { ruleBroken } from '../engine/errors.ts';
import { StartupError } from '../platform/errors.ts';
import { childPath } from '../platform/paths.ts';
import { checkPrivateFile, ensurePrivateDir, lstatOrNull, syncDir, writeNewFile } from '../platform/private-files.ts';
import type { Agent } from '../vault/agents/agent.ts';
import type { AgentKey, AgentKeyStore } from '../vault/ports.ts';

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
    const dir = this.#pendingDir(id);
    ensurePrivateDir(dir);
    writeNewFile(join(dir, PRIVATE_KEY), privateKeyPem);
    writeNewFile(join(dir, AGENT_ID), `${id}\n`);
    syncDir(dir);
  }

  async commit(id: AgentId, name: AgentName): Promise<void> {
    const staged = this.#pendingDir(id);
    // A repeated request finds nothing, because the first one has committed the key.
    if (lstatOrNull(staged) !== null) this.#moveFiles(staged, this.#dirOf(name), this.#idOf(name) !== null);
    // WHY always: a previous call may have renamed the directory and then failed to sync.
    syncDir(this.#root);
  }

  async settle(id: AgentId, name: AgentName, publicKey: PublicKey): Promise<void> {
    const staged = join(this.#pendingDir(id), PRIVATE_KEY);
    const isStaged = lstatOrNull(staged) !== null;
    if (isStaged && publicKeyOfPem(readFileSync(staged, 'latin1')) !== publicKey) await this.abort(id);
    else await this.commit(id, name);
  }

  async abort(id: AgentId): Promise<void> {
    deleteKeyFiles(this.#pendingDir(id));
  }

  async remove(id: AgentId, name: AgentName): Promise<void> {
    await this.abort(id);
    if (this.#idOf(name) !== id) return;
    const dir = this.#dirOf(name);
    const isOnlyKey = readdirSync(dir).every((file) => file === PRIVATE_KEY || file === AGENT_ID);
    if (!isOnlyKey) return deleteKeyFiles(dir);
    // ORDER: rename, then delete. After a crash in between, the next startup deletes the pending directory.
    renameSync(dir, this.#pendingDir(id));
    syncDir(this.#root);
    await this.abort(id);
  }

  async readAll(): Promise<AgentKey[]> {
    const found: AgentKey[] = [];
    // ORDER: staged keys first. A key that is committed in the meantime is then found in its agent's directory.
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
    for (const id of readdirSync(this.#pending).filter((each) => UUID.test(each)) as AgentId[]) {
      const agent = agentsById.get(id);
      if (agent === undefined) await this.abort(id);
      else await this.settle(id, agent.name, agent.publicKey);
    }
    for (const name of readdirSync(this.#root) as AgentName[]) {
      if (name === PENDING) continue;
      this.#makePrivate(join(this.#root, name));
      const id = this.#idOf(name);
      const isOurs = id !== null && ruleBroken(() => parseAgentName(name)) === null;
      if (isOurs && !agentsById.has(id) && (await isDeregistered(id))) await this.remove(id, name);
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

  #dirOf(name: AgentName): string {
    return childPath(this.#root, parseAgentName(name));
  }

  #pendingDir(id: AgentId): string {
    if (!UUID.test(id)) throw new StartupError("An agent's id must be a UUID.");
    return childPath(this.#pending, id);
  }

  /**
   * Moves the files of the staged key into the agent's directory, which may contain other files. ORDER: the id first.
   * After a crash before the key is moved, the next startup recognises the directory, finds the key staged, and moves
   * it. @throws StartupError before anything is changed
   */
  #moveFiles(staged: string, dir: string, replacesKey: boolean): void {
    const found = lstatOrNull(dir);
    if (found === null) return void renameSync(staged, dir);
    const files = [AGENT_ID, PRIVATE_KEY];
    const isForeign = !found.isDirectory() || files.some((file) => lstatOrNull(join(dir, file)) !== null);
    if (isForeign && !replacesKey) {
      throw new StartupError(
        `${dir} contains files that Leasehold did not make. Move it away; nothing in it was changed.`,
      );
    }
    ensurePrivateDir(dir);
    for (const file of files)
      if (lstatOrNull(join(staged, file)) !== null) renameSync(join(staged, file), join(dir, file));
    syncDir(dir);
    removeIfEmpty(staged);
  }

  /** The id of the directory's agent; null if there is no directory, or no id that Leasehold wrote. */
  #idOf(name: string): AgentId | null {
    const dir = childPath(this.#root, name);
    const file = join(dir, AGENT_ID);
    // WHY not `existsSync`: it reports every error as a missing file.
    if (lstatOrNull(dir)?.isDirectory() !== true || lstatOrNull(file) === null) return null;
    const id = readFileSync(file, 'latin1').trim();
    return UUID.test(id) ? (id as AgentId) : null;
  }
}

/**
 * Deletes the files of a key, and then their directory unless it contains other files. ORDER: the id last, so that a
 * crash before it leaves a directory that the next startup recognises.
 */
function deleteKeyFiles(dir: string): void {
  if (lstatOrNull(dir)?.isDirectory() !== true) return;
  for (const file of [PRIVATE_KEY, AGENT_ID]) rmSync(join(dir, file), { force: true });
  syncDir(dir);
  removeIfEmpty(dir);
}

function removeIfEmpty(dir: string): void {
  try {
    rmdirSync(dir);
  } catch (error) {
    if (!isOccupied(error)) throw error;
  }
}

function isOccupied(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return ['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(code);
}

/** Ignores a missing file: its agent was deregistered in the meantime, or the directory belongs to another program. */
function ignoreMissing(error: NodeJS.ErrnoException): readonly string[] {
  if (error.code === 'ENOENT') return [];
  throw error;
}
