/**
 * Counts that need a read of the rows: active leases and open sessions, which end by the clock, the newest complete
 * backup of any node, and the uses of the data key. Rows are read in short steps when a scrape asks, and rarely enough
 * to use at most a fiftieth of the time. Leases older than the oldest active one have ended and are not read again.
 */
import type { VaultKeys } from '../../crypto/vault-keys.ts';
import type { Clock } from '../../ledger/clock.ts';
import { type AuditFilter, listEntries, readHead } from '../../store/audit-log.ts';
import { countActiveLeases, NEWEST_LEASE } from '../../store/lease-lists.ts';
import type { Store } from '../../store/port.ts';
import type { ResultOf } from '../../store/statement.ts';
import { countOpenSessions, readEncryptionCounts } from '../../store/vault-metadata.ts';
import { STEP_ROWS, yieldToEventLoop } from '../../vault/paging.ts';

const MIN_INTERVAL_MS = 10_000;
/** The pause after a count, as a multiple of its duration. */
const REST_FACTOR = 50;

interface Counted {
  readonly leases: { readonly retrieve: number; readonly use: number };
  readonly sessions: number;
  readonly encryptions: number;
  /** When the newest complete backup was recorded, in milliseconds since 1970; null if none is known. */
  readonly backupAt: number | null;
  /** Time of the count, on the clock of `performance.now()`. */
  readonly at: number;
}

export class Inventory {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #keys: Pick<VaultKeys, 'dataKeyIds'>;
  readonly #backup: NewestBackup;
  readonly #minIntervalMs: number;
  #latest: Counted | null = null;
  #running: Promise<void> | null = null;
  #notBefore = 0;
  #oldestSeq = 0;
  #isStopped = false;

  constructor(store: Store, clock: Clock, keys: Pick<VaultKeys, 'dataKeyIds'>, minIntervalMs = MIN_INTERVAL_MS) {
    this.#store = store;
    this.#clock = clock;
    this.#keys = keys;
    this.#backup = new NewestBackup(store);
    this.#minIntervalMs = minIntervalMs;
  }

  /** The latest count, null before the first. Starts another count if it is due. */
  read(): Counted | null {
    if (this.#running === null && !this.#isStopped && performance.now() >= this.#notBefore) {
      this.#running = this.#count().finally(() => {
        this.#running = null;
      });
    }
    return this.#latest;
  }

  /** Resolves when no count is in progress. The store may then be closed. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Never rejects: if the store fails, the age of the count shows it. */
  async #count(): Promise<void> {
    const startedAt = performance.now();
    try {
      const leases = await this.#countLeases();
      const sessions = await this.#countSessions();
      const encryptions = (await this.#store.run(readEncryptionCounts())).get(this.#keys.dataKeyIds.at(-1) ?? '') ?? 0;
      const { last } = await this.#store.run(readHead());
      if (!this.#isStopped) await this.#backup.search(last?.seq ?? 0);
      const backupAt = this.#backup.at;
      if (!this.#isStopped) this.#latest = { leases, sessions, encryptions, backupAt, at: performance.now() };
    } catch {
      // The next scrape tries again.
    }
    const tookMs = performance.now() - startedAt;
    this.#notBefore = performance.now() + Math.max(this.#minIntervalMs, REST_FACTOR * tookMs);
  }

  async #countLeases(): Promise<Counted['leases']> {
    let [retrieve, use] = [0, 0];
    let oldestSeq: number | null = null;
    const now = this.#clock.now();
    // Leases issued during the count are newer than this head, and the next count reads them.
    const { last } = await this.#store.run(readHead());
    let before: number | null = NEWEST_LEASE;
    while (before !== null && !this.#isStopped) {
      await yieldToEventLoop();
      const step: ResultOf<typeof countActiveLeases> = await this.#store.run(
        countActiveLeases(this.#store.dialect, now, this.#oldestSeq, before),
      );
      retrieve += step.retrieve;
      use += step.use;
      oldestSeq = step.oldestSeq ?? oldestSeq;
      before = step.next;
    }
    if (!this.#isStopped) this.#oldestSeq = oldestSeq ?? Math.max(this.#oldestSeq, last?.seq ?? 0);
    return { retrieve, use };
  }

  async #countSessions(): Promise<number> {
    let sessions = 0;
    let cursor = { expiresAt: this.#clock.now(), tokenHash: '' };
    while (!this.#isStopped) {
      await yieldToEventLoop();
      const { count, last } = await this.#store.run(countOpenSessions(cursor, STEP_ROWS));
      sessions += count;
      if (last === null) break;
      cursor = last;
    }
    return sessions;
  }
}

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
  /** The range of entries that were searched; null before the first search. */
  #searched: { from: number; through: number } | null = null;

  constructor(store: Pick<Store, 'run' | 'dialect'>) {
    this.#store = store;
  }

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

  /**
   * Searches backwards. Returns the last entry that is still unread; 0 if a backup was found or all entries were read.
   */
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
