/**
 * The kind and time of recent log entries in memory, so that filters and counts over a million entries take
 * milliseconds. It is read when a list first needs it, in steps, and then only grows at its ends.
 * WHY not indexes in the database: each would be written with every batch, and counts would still read all matches.
 * WHY no value is lost: entries never change. Rows that are altered outside Leasehold later are listed as they were.
 */

import { matchEntries } from '../store/audit-log.ts';
import { type EntryColumns, type EntryKind, readColumns } from '../store/log-columns.ts';
import type { Store } from '../store/port.ts';
import type { AuditFilter } from '../store/queries.ts';
import type { ResultOf } from '../store/statement.ts';
import { BLOCK_ENTRIES, LogBlock } from './log-block.ts';
import { LogDictionary } from './log-dictionary.ts';
import { Selection } from './log-selection.ts';
import { Slice, yieldToEventLoop } from './paging.ts';

/** 32 MiB for a log with few texts; 140 MiB measured with as many texts and ids as memory holds. */
export const MAX_ENTRIES = 512 * BLOCK_ENTRIES;

/** Called with the number of the kind, the time and the sequence number. */
export type VisitEntry = (kind: number, at: number, seq: number) => void;

const blockOf = (seq: number): number => Math.floor(seq / BLOCK_ENTRIES);

interface VisitRange {
  readonly from: number;
  readonly to: number;
  readonly order: 'asc' | 'desc';
}

type Matches = ResultOf<typeof matchEntries>;
export interface ColumnStore {
  readColumns(fromSeq: number, toSeq: number, order: 'asc' | 'desc'): Promise<ResultOf<typeof readColumns>>;
  matchEntries(filter: AuditFilter, fromSeq: number, toSeq: number, order: 'asc' | 'desc'): Promise<Matches>;
}

export function columnsOf(store: Store): ColumnStore {
  return {
    readColumns: (...range) => store.run(readColumns(store.dialect, ...range)),
    matchEntries: (...search) => store.run(matchEntries(store.dialect, ...search)),
  };
}

export class LogColumns {
  readonly #store: ColumnStore;
  readonly #blocks = new Map<number, LogBlock>();
  readonly #dictionary = new LogDictionary();
  /** The entries in memory; none if `#high` < `#low`. */
  #low = 1;
  #high = 0;
  #step: Promise<void> | null = null;
  #reading: Promise<unknown> = Promise.resolve();
  #isStopped = false;
  /** Visits that go on. */
  #visits = 0;

  constructor(store: ColumnStore) {
    this.#store = store;
  }

  /** Resolves when nothing is read any more. The store may be closed then. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#reading.catch(() => undefined);
    await this.#step?.catch(() => undefined);
  }

  /**
   * Reads the entries of the range, newest first. Returns the number from which on they are in memory, which is higher
   * than `from` if the time was up, or the range begins before the newest entries that memory holds. After the time is
   * up, it reads on. @throws StoreError
   */
  async cover(from: number, to: number, withinMs: number): Promise<number> {
    const endsAt = performance.now() + withinMs;
    for (;;) {
      const floor = Math.max(from, this.#lowestKept(to));
      const isDone = floor > to || this.#lowestBefore(to) <= floor;
      const reached = Math.min(to + 1, Math.max(floor, this.#lowestBefore(to)));
      const isBlocked = to <= this.#high && !this.#dictionary.hasRoom;
      if (isDone || isBlocked || this.#isStopped) return reached;
      if (performance.now() >= endsAt) {
        this.#readOn(floor, to);
        return reached;
      }
      await this.#takeStep(floor, to);
    }
  }

  /**
   * Visits the selected entries of a range that is in memory, in slices, until the time is up. Returns the number
   * of the last entry up to which all were visited. A number of a kind means the same until the visit has ended.
   */
  async visit(range: VisitRange, filter: AuditFilter, visit: VisitEntry, endsAt = Number.POSITIVE_INFINITY) {
    this.#visits += 1;
    try {
      return await this.#visitBlocks(range, new Selection(filter, this.#dictionary), visit, endsAt);
    } finally {
      this.#visits -= 1;
    }
  }

  async #visitBlocks({ from, to, order }: VisitRange, selection: Selection, visit: VisitEntry, endsAt: number) {
    // WHY all blocks first: while the event loop runs, the oldest may be dropped.
    const blocks: LogBlock[] = [];
    for (let number = blockOf(from); number <= blockOf(to); number++) {
      const block = this.#blocks.get(number);
      if (block !== undefined) blocks.push(block);
    }
    const [slice, step] = [new Slice(), order === 'asc' ? 1 : -1];
    const isUp = (): boolean => performance.now() >= endsAt;
    for (const block of order === 'asc' ? blocks : blocks.reverse()) {
      const { first, kinds, resources, times } = block;
      const [low, high] = [Math.max(from, first), Math.min(to, first + BLOCK_ENTRIES - 1)];
      const start = order === 'asc' ? low : high;
      if (isUp()) return start - step;
      const seqs = block.hasOtherResources ? await this.#matchInStore(low, high, selection.glob, isUp) : null;
      if (seqs === 'late') return start - step;
      for (let seq = start; seq >= low && seq <= high; seq += step) {
        const index = seq - first;
        const kind = kinds[index] ?? 0;
        if (!selection.hasKind(kind)) continue;
        const { matchedGlobs } = selection;
        if (seqs?.has(seq) ?? selection.hasResource(block, resources[index] ?? 0)) {
          visit(kind, times[index] ?? Number.NaN, seq);
        }
        if (selection.matchedGlobs === matchedGlobs || !slice.isOver) continue;
        await slice.pause();
        if (isUp()) return seq;
      }
      await slice.pause();
    }
    return order === 'asc' ? to : from;
  }

  /** The entries whose resource matches, if the time suffices; null if every resource does. */
  async #matchInStore(low: number, high: number, glob: string | null, isUp: () => boolean) {
    if (glob === null) return null;
    const seqs = new Set<number>();
    const filter = { agentName: null, resource: glob, action: null, eventType: null, result: null };
    for (let place: number | null = low; place !== null; ) {
      await yieldToEventLoop();
      if (isUp()) return 'late';
      const step: Matches = await this.#store.matchEntries(filter, place, high, 'asc');
      for (const seq of step.seqs) seqs.add(seq);
      place = step.next;
    }
    return seqs;
  }

  /** Null for the number of entries that do not exist. */
  kind(number: number): EntryKind | null {
    return this.#dictionary.kind(number);
  }

  /** The kinds of all entries in memory. */
  kinds(): readonly EntryKind[] {
    return this.#dictionary.kinds();
  }

  /** The lowest number that memory may hold when it holds entry `to`. */
  #lowestKept(to: number): number {
    return (blockOf(Math.max(this.#high, to) - MAX_ENTRIES) + 1) * BLOCK_ENTRIES;
  }

  /** The lowest number from which on all entries up to `to` are in memory; `to` + 1 if that one is not. */
  #lowestBefore(to: number): number {
    return to <= this.#high && to >= this.#low ? this.#low : to + 1;
  }

  #readOn(from: number, to: number): void {
    const rest = this.#reading.then(() => this.cover(from, to, Number.POSITIVE_INFINITY));
    // The next request reports an error of the store.
    this.#reading = rest.catch(() => undefined);
  }

  #takeStep(from: number, to: number): Promise<void> {
    this.#step ??= this.#read(from, to).finally(() => {
      this.#step = null;
    });
    return this.#step;
  }

  async #read(from: number, to: number): Promise<void> {
    await yieldToEventLoop();
    if (this.#high < this.#low || to - this.#high > MAX_ENTRIES) {
      [this.#low, this.#high] = [to + 1, to];
      await this.#dropBelow(blockOf(this.#low) + 1);
    }
    const isUp = to > this.#high;
    const [low, high] = isUp ? [this.#high + 1, to] : [Math.min(from, this.#low - 1), this.#low - 1];
    const { rows, next } = await this.#store.readColumns(low, high, isUp ? 'asc' : 'desc');
    if (this.#visits === 0) this.#dictionary.reuseNumbers();
    for (const row of rows) this.#put(row);
    if (isUp) this.#high = next === null ? high : next - 1;
    else this.#low = next === null ? low : next + 1;
    await this.#dropOldest();
  }

  #put(row: EntryColumns): void {
    const number = blockOf(row.seq);
    let block = this.#blocks.get(number);
    if (block === undefined) {
      block = new LogBlock(number);
      this.#blocks.set(number, block);
    }
    block.put(row, this.#dictionary);
  }

  async #dropOldest(): Promise<void> {
    const lowest = this.#lowestKept(this.#high);
    if (this.#low < lowest) {
      this.#low = lowest;
      await this.#dropBelow(blockOf(lowest));
    }
    while (this.#dictionary.isFull && blockOf(this.#low) < blockOf(this.#high)) {
      this.#low = (blockOf(this.#low) + 1) * BLOCK_ENTRIES;
      await this.#dropBelow(blockOf(this.#low));
    }
  }

  /** Drops the blocks with lower numbers. */
  async #dropBelow(lowest: number): Promise<void> {
    const slice = new Slice();
    for (const [number, block] of this.#blocks) {
      if (number >= lowest) continue;
      this.#blocks.delete(number);
      block.release(this.#dictionary);
      await slice.pause();
    }
  }
}
