/**
 * Handles file-system errors of the files of private keys: the request fails with 503, or leaves its clean-up
 * unfinished, and the work is repeated until it succeeds. The agents in the database then decide: the key of a
 * registered agent is committed, any other one is removed. INVARIANT: an I/O error stops the process; the next startup
 * finishes the work.
 */

import type { AgentId, AgentName } from '../../core/names.ts';
import { ApiError } from '../../engine/errors.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { StoreError } from '../../store/errors.ts';
import { NOOP } from '../audit/lifecycle.ts';
import type { AgentKey, AgentKeyStore } from '../ports.ts';

export interface RetryingAgentKeysParts {
  readonly keyStore: AgentKeyStore;
  readonly ledger: Pick<Ledger, 'memory' | 'submit'>;
  /** Called when an operation on key files failed, for the server log. */
  readonly onFailure: (error: unknown) => void;
  /** Called after a storage failure that must stop the process. */
  readonly onStorageFailure: (failure: StoreError) => void;
  readonly intervalMs?: number;
}

const INTERVAL_MS = 1000;

export class RetryingAgentKeys {
  readonly #parts: RetryingAgentKeysParts;
  readonly #unfinished = new Map<AgentId, AgentName>();
  #timer: NodeJS.Timeout | null = null;
  #isStopped = false;

  constructor(parts: RetryingAgentKeysParts) {
    this.#parts = parts;
  }

  /** As in `AgentKeyStore`. @throws UNAVAILABLE after removing what was written */
  async stage(id: AgentId, name: AgentName, privateKeyPem: string): Promise<void> {
    if (await this.#succeeds(id, name, (keyStore) => keyStore.stage(id, privateKeyPem))) return;
    await this.abort(id, name);
    throw new ApiError(
      'UNAVAILABLE',
      'The private key could not be written; nothing was registered. Try again later.',
      1,
    );
  }

  /** As in `AgentKeyStore`. @throws UNAVAILABLE if it failed; it is repeated until it succeeds */
  async commit(id: AgentId, name: AgentName): Promise<void> {
    if (await this.#succeeds(id, name, (keyStore) => keyStore.commit(id, name))) return;
    const message =
      'The agent is registered, but its private key could not be moved to its directory yet. The server repeats that until it succeeds.';
    throw new ApiError('UNAVAILABLE', message, 1);
  }

  /** As in `AgentKeyStore`; repeated later if it fails. */
  async abort(id: AgentId, name: AgentName): Promise<void> {
    await this.#succeeds(id, name, (keyStore) => keyStore.abort(id));
  }

  /** As in `AgentKeyStore`; repeated later if it fails. */
  async remove(id: AgentId, name: AgentName): Promise<void> {
    await this.#succeeds(id, name, (keyStore) => keyStore.remove(id, name));
  }

  readAll(): Promise<AgentKey[]> {
    return this.#parts.keyStore.readAll();
  }

  /** Commits or removes the key later, if it is unknown whether the agent was registered. */
  recoverLater(id: AgentId, name: AgentName): void {
    this.#unfinished.set(id, name);
    this.#schedule();
  }

  /** Leaves unfinished work to the next startup. */
  stop(): void {
    this.#isStopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #succeeds(id: AgentId, name: AgentName, work: (keyStore: AgentKeyStore) => Promise<void>): Promise<boolean> {
    try {
      await work(this.#parts.keyStore);
      return true;
    } catch (error) {
      this.#parts.onFailure(error);
      this.#stopOnStorageFailure(error);
      this.recoverLater(id, name);
      return false;
    }
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      void this.#recover().finally(() => {
        if (this.#unfinished.size > 0) this.#schedule();
      });
    }, this.#parts.intervalMs ?? INTERVAL_MS).unref();
  }

  /** Never rejects. */
  async #recover(): Promise<void> {
    const { keyStore, ledger } = this.#parts;
    const unfinished = [...this.#unfinished];
    // ORDER: after a batch, memory includes the outcome of every earlier commit.
    const isKnown = await ledger.submit(NOOP).then(
      () => true,
      () => false,
    );
    if (!isKnown) return;
    for (const [id, name] of unfinished) {
      try {
        const agent = ledger.memory.control.agentById(id);
        if (agent === null) await keyStore.remove(id, name);
        else await keyStore.settle(id, name, agent.publicKey);
        this.#unfinished.delete(id);
      } catch (error) {
        this.#stopOnStorageFailure(error);
      }
    }
  }

  /**
   * WHY: after a failed write or sync the content of the disk is unknown, and a second sync can succeed without writing
   * it.
   */
  #stopOnStorageFailure(error: unknown): void {
    if (!(error instanceof Error && 'code' in error && error.code === 'EIO')) return;
    this.stop();
    this.#parts.onStorageFailure(new StoreError('fatal', 'a file of a private key: EIO', { cause: error }));
  }
}
