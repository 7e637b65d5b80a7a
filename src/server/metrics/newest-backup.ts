/**
 * Finds the newest complete backup in the log, whichever node took it. Each search reads the entries that are new, and
 * some earlier ones until it has found a backup or read the whole log.
 */

import { listEntries } from '../../store/audit-log.ts';
import type { Store } from '../../store/port.ts';
import type { AuditFilter } from '../../store/queries.ts';
import { yieldToEventLoop } from '../../vault/paging.ts';

const COMPLETE: AuditFilter = {
  agentName: null,
  resource: null,
  action: null,
  eventType: 'service.backup_result',
  result: 'allowed',
};
/** Steps per search, each of a few milliseconds, so that a scrape never blocks. */
const MAX_STEPS = 100;

export class NewestBackup {
  readonly #store: Pick<Store, 'run' | 'dialect'>;
  #at: number | null = null;
  /** The entries that were searched; null before the first search. */
  #searched: { from: number; through: number } | null = null;

  constructor(store: Pick<Store, 'run' | 'dialect'>) {
    this.#store = store;
  }

  /** When its entry was written, in milliseconds since 1970; null if none is known. */
  get at(): number | null {
    return this.#at;
  }

  /** @throws StoreError */
  async search(lastSeq: number): Promise<void> {
    const { from, through } = this.#searched ?? { from: lastSeq + 1, through: lastSeq };
    await this.#find(through + 1, lastSeq, Number.POSITIVE_INFINITY);
    const left = this.#at === null ? await this.#find(1, from - 1, MAX_STEPS) : 0;
    this.#searched = { from: left + 1, through: lastSeq };
  }

  /** Searches backwards. Returns the last entry that it has not read; 0 if it has found a backup or read them all. */
  async #find(from: number, to: number, maxSteps: number): Promise<number> {
    let cursor = to;
    for (let step = 0; step < maxSteps && cursor >= from; step++) {
      await yieldToEventLoop();
      const { dialect } = this.#store;
      const range = { from, to: cursor, order: 'desc' } as const;
      const { rows, next } = await this.#store.run(listEntries(dialect, COMPLETE, range, 1));
      const [newest] = rows;
      if (newest !== undefined) {
        this.#at = Date.parse(newest.timestamp);
        return 0;
      }
      if (next === null) return 0;
      cursor = next;
    }
    return cursor < from ? 0 : cursor;
  }
}
