/**
 * Values in files for as long as their leases last: a file goes when its lease ends, when the lease is revoked, when the model asks
 * for it, and when the server stops.
 */
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Secret } from '../core/secret.ts';
import type { FilesFolder } from './folder.ts';
import type { HeldLeases } from './leases.ts';
import { Refusal } from './refusal.ts';

const MOST_FILES = 64;
const LOOK_EVERY_MS = 500;
/** How long a file may outlive a lease that somebody revoked. */
const ASK_EVERY_MS = 5000;

interface Kept {
  readonly path: CredentialPath;
  readonly value: Secret;
  readonly leaseId: string;
  readonly expiresAt: string;
  /** By both clocks of this machine: one stands still while it sleeps, the other may be set. */
  readonly endsAt: { readonly monotonicMs: number; readonly wallMs: number };
  askedAtMs: number;
}

export interface KeptFile {
  readonly file: string;
  readonly leaseId: string;
  readonly expiresAt: string;
}

export class KeptFiles {
  readonly #client: Leasehold;
  readonly #leases: HeldLeases;
  readonly #folder: FilesFolder;
  readonly #kept = new Map<string, Kept>();
  /** Under a name one thing is done at a time. */
  readonly #busy = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  readonly #stop = new AbortController();
  #look: Promise<void> | null = null;

  constructor(client: Leasehold, leases: HeldLeases, folder: FilesFolder) {
    this.#client = client;
    this.#leases = leases;
    this.#folder = folder;
    this.#timer = setInterval(() => {
      this.#look ??= this.#removeEnded().finally(() => {
        this.#look = null;
      });
    }, LOOK_EVERY_MS);
    this.#timer.unref();
  }

  get folder(): string {
    return this.#folder.path;
  }

  /** What lies in the files now: a command could be made to read one. */
  values(): Secret[] {
    return [...this.#kept.values()].map(({ value }) => value);
  }

  /** Writes the value of `path` into the file `name`; one that was written before under it gives way. @throws Refusal, LeaseholdError */
  keep(name: string, path: CredentialPath, ttlSeconds?: number): Promise<KeptFile> {
    return this.#alone(name, async () => {
      if (!this.#kept.has(name) && this.#kept.size + this.#busy.size > MOST_FILES) {
        throw new Refusal('BUSY', `there are ${MOST_FILES} files already; remove one with remove_file`);
      }
      const asked = { monotonicMs: performance.now(), wallMs: Date.now() };
      const { value, lease_id: leaseId } = await this.#leases.retrieve(path, ttlSeconds);
      try {
        // The answer has no beginning, and this machine's clock may differ from the service's: the difference of two of its times does not.
        const { issued_at, expires_at: expiresAt } = await this.#client.leases.read(leaseId);
        const lastsMs = Date.parse(expiresAt) - Date.parse(issued_at);
        const endsAt = { monotonicMs: asked.monotonicMs + lastsMs, wallMs: asked.wallMs + lastsMs };
        await this.#remove(name);
        const file = await this.#folder.write(name, value);
        this.#kept.set(name, { path, value, leaseId, expiresAt, endsAt, askedAtMs: performance.now() });
        return { file, leaseId, expiresAt };
      } catch (error) {
        await this.#leases.release(leaseId, this.#stop.signal);
        throw error;
      }
    });
  }

  /** Removes the file and ends its lease. @throws Refusal */
  remove(name: string): Promise<{ readonly path: CredentialPath; readonly leaseId: string }> {
    return this.#alone(name, async () => {
      const kept = this.#kept.get(name);
      if (kept === undefined) throw new Refusal('NOT_FOUND', 'name: this server keeps no file of that name');
      await this.#remove(name);
      return kept;
    });
  }

  /** Removes every file; their leases are left to whoever ends all of them. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    await this.#look;
    await this.#folder.close();
    this.#kept.clear();
  }

  async #alone<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy.has(name)) throw new Refusal('BUSY', 'name: something else is being done with this file');
    this.#busy.add(name);
    try {
      return await work();
    } finally {
      this.#busy.delete(name);
    }
  }

  async #remove(name: string): Promise<void> {
    const kept = this.#kept.get(name);
    if (kept === undefined) return;
    this.#kept.delete(name);
    await this.#folder.remove(name);
    await this.#leases.release(kept.leaseId, this.#stop.signal);
  }

  async #removeEnded(): Promise<void> {
    for (const [name, kept] of this.#kept) {
      if (!this.#busy.has(name) && (await this.#hasEnded(kept))) await this.#alone(name, () => this.#remove(name));
    }
  }

  async #hasEnded(kept: Kept): Promise<boolean> {
    const now = performance.now();
    if (now >= kept.endsAt.monotonicMs || Date.now() >= kept.endsAt.wallMs) return true;
    if (now - kept.askedAtMs < ASK_EVERY_MS) return false;
    kept.askedAtMs = now;
    try {
      return (await this.#client.leases.read(kept.leaseId, { signal: this.#stop.signal })).status !== 'active';
    } catch (error) {
      // Out of reach is no end: the clock is still asked.
      return error instanceof LeaseholdError && (error.status === 404 || error.status === 401 || error.status === 403);
    }
  }
}
