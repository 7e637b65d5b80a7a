/**
 * Values in files for as long as their leases last: a file goes when its lease ends, when the lease is revoked, when the model asks
 * for it, and when the server stops.
 */

import { LeaseholdError } from '../client/errors.ts';
import { Expiry, now } from '../client/expiry.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { CredentialPath } from '../core/path.ts';
import { ToolError } from './errors.ts';
import type { FileDirectory } from './file-directory.ts';
import type { HeldLeases } from './leases.ts';
import type { OutstandingValues } from './outstanding-values.ts';

const MOST_FILES = 64;
const LOOK_EVERY_MS = 500;
/** How long a file may outlive a lease that somebody revoked. */
const ASK_EVERY_MS = 5000;
const ASK_WITHIN_MS = 2000;
/** Questions at a time: all files are asked about within ASK_EVERY_MS. */
const MOST_ASKED = 8;

interface LeasedFile {
  readonly path: CredentialPath;
  /** Nobody can read it in the file any more. */
  readonly endLoan: () => void;
  readonly leaseId: string;
  readonly expiresAt: string;
  readonly end: Expiry;
  askedAtMs: number;
}

export interface KeptFile {
  readonly file: string;
  readonly leaseId: string;
  readonly expiresAt: string;
}

export class LeasedFiles {
  readonly #client: Leasehold;
  readonly #leases: HeldLeases;
  readonly #folder: FileDirectory;
  readonly #lent: OutstandingValues | null;
  readonly #kept = new Map<string, LeasedFile>();
  /** Under a name one thing is done at a time. */
  readonly #busy = new Set<string>();
  /** What is being unlinked because its lease has ended, by name. */
  readonly #removals = new Map<string, Promise<void>>();
  readonly #timer: NodeJS.Timeout;
  readonly #stop = new AbortController();
  #asking: Promise<void> | null = null;

  /** `lent`: null where no command runs whose output could show a file. */
  constructor(client: Leasehold, leases: HeldLeases, folder: FileDirectory, lent: OutstandingValues | null) {
    this.#client = client;
    this.#leases = leases;
    this.#folder = folder;
    this.#lent = lent;
    this.#timer = setInterval(() => {
      // ORDER: by the clock first, which waits for nobody.
      this.#removeEnded();
      this.#asking ??= this.#askAll()
        // WHY: what goes wrong in a look is looked at in the next one; the process must not die of it.
        .catch(() => undefined)
        .finally(() => {
          this.#asking = null;
        });
    }, LOOK_EVERY_MS);
    this.#timer.unref();
  }

  get folder(): string {
    return this.#folder.path;
  }

  /** Writes the value of `path` into the file `name`; one that was written before under it gives way. @throws Refusal, LeaseholdError */
  keep(name: string, path: CredentialPath, ttlSeconds?: number): Promise<KeptFile> {
    return this.#exclusive(name, async () => {
      if (!this.#kept.has(name) && this.#kept.size + this.#busy.size > MOST_FILES) {
        throw new ToolError('BUSY', `there are ${MOST_FILES} files already; remove one with remove_file`);
      }
      const asked = now();
      const { value, lease_id: leaseId } = await this.#leases.retrieve(path, ttlSeconds);
      let endLoan = (): void => undefined;
      try {
        // The answer has no beginning, and this machine's clock may differ from the service's: the difference of two of its times does not.
        const { issued_at, expires_at: expiresAt } = await this.#client.leases.read(leaseId);
        const end = new Expiry(asked, Date.parse(expiresAt) - Date.parse(issued_at));
        endLoan = this.#lent?.register(value, 'path') ?? endLoan;
        await this.#remove(name);
        await this.#removals.get(name);
        const file = await this.#folder.write(name, value);
        this.#kept.set(name, { path, endLoan, leaseId, expiresAt, end, askedAtMs: performance.now() });
        return { file, leaseId, expiresAt };
      } catch (error) {
        endLoan();
        await this.#leases.release(leaseId, this.#stop.signal);
        throw error;
      }
    });
  }

  /** Removes the file and ends its lease. @throws Refusal */
  remove(name: string): Promise<{ readonly path: CredentialPath; readonly leaseId: string }> {
    return this.#exclusive(name, async () => {
      const kept = this.#kept.get(name);
      if (kept === undefined) throw new ToolError('NOT_FOUND', 'name: this server keeps no file of that name');
      await this.#remove(name);
      return kept;
    });
  }

  /** Removes every file; their leases are left to whoever ends all of them. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#stop.abort();
    // ORDER: the files go at once; nobody who does not answer is waited for.
    await this.#folder.close();
    await Promise.all(this.#removals.values());
    this.#kept.clear();
    await this.#asking;
  }

  async #exclusive<T>(name: string, work: () => Promise<T>): Promise<T> {
    if (this.#busy.has(name)) throw new ToolError('BUSY', 'name: something else is being done with this file');
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
    await this.#unlink(name, kept);
    await this.#release(kept);
  }

  /** Of this machine alone: no network is waited for. */
  async #unlink(name: string, kept: LeasedFile): Promise<void> {
    this.#kept.delete(name);
    await this.#folder.remove(name);
    kept.endLoan();
  }

  async #release({ leaseId }: LeasedFile): Promise<void> {
    await this.#leases.release(leaseId, AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ASK_WITHIN_MS)]));
  }

  /** By the clocks alone. Also where something is being done under the name: that begins with what is not there any more. */
  #removeEnded(): void {
    for (const [name, kept] of this.#kept) {
      if (kept.end.remainingMs() <= 0) this.#letGo(name, kept);
    }
  }

  #letGo(name: string, kept: LeasedFile): void {
    // WHY: a question was waited for, and meanwhile it may have been removed or written anew.
    if (this.#kept.get(name) !== kept) return;
    const going = this.#unlink(name, kept)
      .catch(() => undefined)
      .finally(() => this.#removals.delete(name));
    this.#removals.set(name, going);
    // The lease is at its end; one that isn't is revoked when the server stops.
    going.then(() => this.#release(kept)).catch(() => undefined);
  }

  async #askAll(): Promise<void> {
    const before = performance.now() - ASK_EVERY_MS;
    const due = [...this.#kept].filter(([, { askedAtMs }]) => askedAtMs < before).slice(0, MOST_ASKED);
    await Promise.all(
      due.map(async ([name, kept]) => {
        kept.askedAtMs = performance.now();
        if (await this.#wasEnded(kept)) this.#letGo(name, kept);
      }),
    );
  }

  /** Asks the service. */
  async #wasEnded({ leaseId }: LeasedFile): Promise<boolean> {
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(ASK_WITHIN_MS)]);
    try {
      return (await this.#client.leases.read(leaseId, { signal })).status !== 'active';
    } catch (error) {
      // Out of reach is no end: the clock is still asked.
      return error instanceof LeaseholdError && (error.status === 404 || error.status === 401 || error.status === 403);
    }
  }
}
