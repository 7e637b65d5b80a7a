/**
 * The files of private keys, where the file system may fail: a request ends with 503 or without its clean-up, and the work is
 * repeated until it succeeds. The log then decides what is right: the key of a registered agent is published, any other one is
 * removed. INVARIANT: an I/O error stops the process; start-up finishes the work.
 */
import { ApiError } from '../core/errors.ts';
import type { AgentId, AgentName } from '../core/names.ts';
import { NOOP } from '../core/operations/lifecycle.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { StoreError } from '../store/errors.ts';
import type { AgentKeyStore } from './agent-key-store.ts';

export interface KeyRecoveryParts {
  readonly keyFiles: AgentKeyStore;
  readonly ledger: Pick<Ledger, 'memory' | 'submit'>;
  /** Called when a request's work on key files failed, for the service's log. */
  readonly onFailure: (error: unknown) => void;
  /** Called when the storage failed so that the process must stop. */
  readonly onBroken: (failure: StoreError) => void;
  readonly intervalMs?: number;
}

const INTERVAL_MS = 1000;

export class KeyRecovery {
  readonly #parts: KeyRecoveryParts;
  readonly #unfinished = new Map<AgentId, AgentName>();
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(parts: KeyRecoveryParts) {
    this.#parts = parts;
  }

  /** As `KeyFiles`. @throws UNAVAILABLE: then nothing of it stays */
  async prepare(id: AgentId, name: AgentName, privateKeyPem: string): Promise<void> {
    if (await this.#succeeds(id, name, (files) => files.stage(id, privateKeyPem))) return;
    await this.discard(id, name);
    throw new ApiError(
      'UNAVAILABLE',
      'The private key could not be written; nothing was registered. Try again later.',
      1,
    );
  }

  /** As `KeyFiles`. @throws UNAVAILABLE: then it is repeated until it succeeds */
  async publish(id: AgentId, name: AgentName): Promise<void> {
    if (await this.#succeeds(id, name, (files) => files.commit(id, name))) return;
    const message =
      'The agent is registered, but its private key could not be moved to its directory yet. The service repeats that until it succeeds.';
    throw new ApiError('UNAVAILABLE', message, 1);
  }

  /** As `KeyFiles`, or later. */
  async discard(id: AgentId, name: AgentName): Promise<void> {
    await this.#succeeds(id, name, (files) => files.abort(id));
  }

  /** As `KeyFiles`, or later. */
  async remove(id: AgentId, name: AgentName): Promise<void> {
    await this.#succeeds(id, name, (files) => files.remove(id, name));
  }

  /** Publishes or removes the key later, where it is not known whether the agent was registered. */
  settleLater(id: AgentId, name: AgentName): void {
    this.#unfinished.set(id, name);
    this.#schedule();
  }

  /** What is unfinished is left to the next start. */
  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #succeeds(id: AgentId, name: AgentName, work: (files: AgentKeyStore) => Promise<void>): Promise<boolean> {
    try {
      await work(this.#parts.keyFiles);
      return true;
    } catch (error) {
      this.#parts.onFailure(error);
      this.#stopIfBroken(error);
      this.settleLater(id, name);
      return false;
    }
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#settle().finally(() => {
        if (this.#unfinished.size > 0) this.#schedule();
      });
    }, this.#parts.intervalMs ?? INTERVAL_MS).unref();
  }

  /** Never rejects. */
  async #settle(): Promise<void> {
    const { keyFiles, ledger } = this.#parts;
    const unfinished = [...this.#unfinished];
    // ORDER: after a turn memory says what came of every commit before it.
    const isKnown = await ledger.submit(NOOP).then(
      () => true,
      () => false,
    );
    if (!isKnown) return;
    for (const [id, name] of unfinished) {
      try {
        if (ledger.memory.control.agentById(id) === null) await keyFiles.remove(id, name);
        else await keyFiles.commit(id, name);
        this.#unfinished.delete(id);
      } catch (error) {
        this.#stopIfBroken(error);
      }
    }
  }

  /** WHY: what a failed write or sync left on the disk is unknown, and a second try would succeed without it. */
  #stopIfBroken(error: unknown): void {
    if (!(error instanceof Error && 'code' in error && error.code === 'EIO')) return;
    this.stop();
    this.#parts.onBroken(new StoreError('fatal', 'a file of a private key: EIO', { cause: error }));
  }
}
