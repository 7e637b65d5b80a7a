/**
 * Files with values. A file is removed when its lease expires or is revoked, by remove_file, and when the server stops.
 */

import { LeaseholdError } from '../client/errors.ts';
import { Expiry, now } from '../client/expiry.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { CredentialPath } from '../core/path.ts';
import { inParallel } from '../platform/parallel.ts';
import { ToolError } from './errors.ts';
import type { FileDirectory } from './file-directory.ts';
import type { HeldLeases } from './leases.ts';
import type { OutstandingValues } from './outstanding-values.ts';

const MAX_FILES = 64;
const CHECK_INTERVAL_MS = 500;
/** How long a file may outlive the revocation of its lease. */
const QUERY_INTERVAL_MS = 5000;
const QUERY_TIMEOUT_MS = 2000;
/** Concurrent queries. */
const MAX_QUERIES = 8;

interface LeasedFile {
  readonly path: CredentialPath;
  readonly file: string;
  /** Called once the file no longer exists: its value is then not outstanding. */
  readonly unregister: () => void;
  readonly leaseId: string;
  readonly expiresAt: string;
  readonly end: Expiry;
}

export class LeasedFiles {
  readonly #client: Leasehold;
  readonly #leases: HeldLeases;
  readonly #directory: FileDirectory;
  readonly #outstanding: OutstandingValues;
  readonly #files = new Map<string, LeasedFile>();
  /** Names with an operation in progress; at most one for each name. */
  readonly #busy = new Set<string>();
  /** Removals in progress after the end of a lease, by name. */
  readonly #removals = new Map<string, Promise<void>>();
  readonly #timers: readonly NodeJS.Timeout[];
  readonly #stop = new AbortController();
  #querying: Promise<void> | null = null;

  constructor(client: Leasehold, leases: HeldLeases, directory: FileDirectory, outstanding: OutstandingValues) {
    this.#client = client;
    this.#leases = leases;
    this.#directory = directory;
    this.#outstanding = outstanding;
    const removing = setInterval(() => this.#removeEnded(), CHECK_INTERVAL_MS);
    const querying = setInterval(() => {
      this.#querying ??= this.#removeRevoked().finally(() => {
        this.#querying = null;
      });
    }, QUERY_INTERVAL_MS);
    this.#timers = [removing.unref(), querying.unref()];
  }

  /**
   * Writes the value of `path` to the file `name`, replacing an earlier one of this server. @throws ToolError,
   * LeaseholdError
   */
  keep(name: string, path: CredentialPath, ttlSeconds?: number): Promise<LeasedFile> {
    return this.#exclusive(name, async () => {
      if (!this.#files.has(name) && this.#files.size + this.#busy.size > MAX_FILES) {
        throw new ToolError('BUSY', `there are ${MAX_FILES} files already; remove one with remove_file`);
      }
      const asked = now();
      const { value, lease_id: leaseId } = await this.#leases.retrieve(path, ttlSeconds);
      let unregister = (): void => undefined;
      try {
        // The response has no issue time and clocks may differ, so the duration is derived from the lease's own
        // timestamps.
        const { issued_at, expires_at: expiresAt } = await this.#client.leases.read(leaseId);
        const end = new Expiry(asked, Date.parse(expiresAt) - Date.parse(issued_at));
        unregister = this.#outstanding.register(value, 'path');
        await this.#remove(name);
        await this.#removals.get(name);
        const file = await this.#directory.write(name, value);
        const kept = { path, file, unregister, leaseId, expiresAt, end };
        this.#files.set(name, kept);
        return kept;
      } catch (error) {
        unregister();
        await this.#leases.release(leaseId, this.#stop.signal);
        throw error;
      }
    });
  }

  /** Removes the file and revokes its lease. @throws ToolError */
  remove(name: string): Promise<{ readonly path: CredentialPath; readonly leaseId: string }> {
    return this.#exclusive(name, async () => {
      const kept = this.#files.get(name);
      if (kept === undefined) throw new ToolError('NOT_FOUND', 'name: this server wrote no file of that name');
      await this.#remove(name);
      return kept;
    });
  }

  /** Removes every file. Revoking the leases is left to the caller. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    this.#stop.abort();
    // ORDER: files first, without waiting for the service.
    await this.#directory.close();
    await Promise.all(this.#removals.values());
    this.#files.clear();
    await this.#querying;
  }

  async #exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy.has(name)) throw new ToolError('BUSY', 'name: another operation on this file is in progress');
    this.#busy.add(name);
    try {
      return await work();
    } finally {
      this.#busy.delete(name);
    }
  }

  async #remove(name: string): Promise<void> {
    const kept = this.#files.get(name);
    if (kept === undefined) return;
    await this.#unlink(name, kept);
    await this.#release(kept);
  }

  /** Local only, without a request. */
  async #unlink(name: string, kept: LeasedFile): Promise<void> {
    this.#files.delete(name);
    await this.#directory.remove(name);
    kept.unregister();
  }

  async #release({ leaseId }: LeasedFile): Promise<void> {
    await this.#leases.release(leaseId, AbortSignal.any([this.#stop.signal, AbortSignal.timeout(QUERY_TIMEOUT_MS)]));
  }

  /** Uses the clocks only. Safe during an operation on the same name, which tolerates a missing file. */
  #removeEnded(): void {
    for (const [name, kept] of this.#files) {
      if (kept.end.remainingMs() <= 0) this.#letGo(name, kept);
    }
  }

  #letGo(name: string, kept: LeasedFile): void {
    // WHY: while the query ran, the file may have been removed or replaced.
    if (this.#files.get(name) !== kept) return;
    const going = this.#unlink(name, kept)
      .catch(() => undefined)
      .finally(() => this.#removals.delete(name));
    this.#removals.set(name, going);
    // A lease whose release fails is revoked when the server stops.
    going.then(() => this.#release(kept)).catch(() => undefined);
  }

  async #removeRevoked(): Promise<void> {
    await inParallel([...this.#files], MAX_QUERIES, async ([name, kept]) => {
      if (await this.#wasEnded(kept)) this.#letGo(name, kept);
    });
  }

  /** Queries the service. */
  async #wasEnded({ leaseId }: LeasedFile): Promise<boolean> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(QUERY_TIMEOUT_MS)]);
    try {
      return (await this.#client.leases.read(leaseId, { signal })).status !== 'active';
    } catch (error) {
      // An unreachable service does not end a lease; the clock still does.
      return error instanceof LeaseholdError && (error.status === 404 || error.status === 401 || error.status === 403);
    }
  }
}
