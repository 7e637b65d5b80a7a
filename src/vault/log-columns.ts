/**
 * The kind and time of recent log entries in memory, so that filters and counts over a million entries take
 * milliseconds. It is read when a list first needs it, in steps, and then only grows at its ends.
 * WHY not indexes in the database: each would be written with every batch, and counts would still read all matches.
 * WHY no value is lost: entries never change. Rows that are altered outside Leasehold later are listed as they were.
 */
import type { EntryColumns, EntryKind } from '../store/log-columns.ts';
import type { AuditFilter } from '../store/queries.ts';
import type { Store } from '../store/sql-store.ts';
import { LogDictionary, OTHER_RESOURCE, type Selection } from './log-dictionary.ts';
import { yieldToEventLoop } from './paging.ts';

const BLOCK_ENTRIES = 4096;
/** 32 MiB. */
export const MAX_ENTRIES = 512 * BLOCK_ENTRIES;
/** Less than a batch takes. */
const SLICE_MS = 2;

interface Block {
  /** Numbers of kinds; 0 for an entry that does not exist. */
  readonly kinds: Uint32Array;
  /** Numbers of resources. */
  readonly resources: Uint32Array;
  hasOtherResources: boolean;
  /** Milliseconds since 1970; NaN for an entry whose timestamp was altered. */
  readonly times: Float64Array;
}

/** Called with the number of the kind, the time and the sequence number. */
export type VisitEntry = (kind: number, at: number, seq: number) => void;

const blockOf = (seq: number): number => Math.floor(seq / BLOCK_ENTRIES);

type ColumnStore = Pick<Store, 'readColumns' | 'matchEntries'>;

export class LogColumns {
  readonly #store: ColumnStore;
  readonly #blocks = new Map<number, Block>();
  readonly #dictionary = new LogDictionary();
  /** The entries in memory; none if `#high` < `#low`. */
  #low = 1;
  #high = 0;
  #step: Promise<void> | null = null;
  #reading: Promise<unknown> = Promise.resolve();
  #isStopped = false;

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
      if (isDone || this.#isStopped || this.#dictionary.isFull) return reached;
      if (performance.now() >= endsAt) {
        this.#readOn(floor, to);
        return reached;
      }
      await this.#takeStep(floor, to);
    }
  }

  /**
   * Visits the selected entries of a range that is in memory, in slices, until the time is up. Returns the number
   * of the last entry up to which all were visited.
   */
  async visit(
    { from, to, order }: { readonly from: number; readonly to: number; readonly order: 'asc' | 'desc' },
    filter: AuditFilter,
    visit: VisitEntry,
    endsAt = Number.POSITIVE_INFINITY,
  ): Promise<number> {
    const selection = this.#dictionary.select(filter);
    // WHY all blocks first: while the event loop runs, the oldest may be dropped.
    const blocks: { readonly first: number; readonly block: Block }[] = [];
    for (let number = blockOf(from); number <= blockOf(to); number++) {
      const block = this.#blocks.get(number);
      if (block !== undefined) blocks.push({ first: number * BLOCK_ENTRIES, block });
    }
    const slice = new Slice();
    for (const { first, block } of order === 'asc' ? blocks : blocks.reverse()) {
      const [low, high] = [Math.max(from, first), Math.min(to, first + BLOCK_ENTRIES - 1)];
      if (performance.now() >= endsAt) return order === 'asc' ? low - 1 : high + 1;
      const seqs = await this.#selectResources(block, first, low, high, selection, slice);
      const visitOne = (seq: number): void => {
        const index = seq - first;
        const kind = block.kinds[index] ?? 0;
        if (selection.kinds[kind] !== 1) return;
        const isSelected =
          seqs?.has(seq) ?? (selection.glob === null || selection.hasResource(block.resources[index] ?? 0));
        if (isSelected) visit(kind, block.times[index] ?? Number.NaN, seq);
      };
      if (order === 'asc') for (let seq = low; seq <= high; seq++) visitOne(seq);
      else for (let seq = high; seq >= low; seq--) visitOne(seq);
      await slice.pause();
    }
    return order === 'asc' ? to : from;
  }

  /**
   * Tests the resources of the range. Returns the entries with a selected one, if the texts of some are not in memory;
   * otherwise null.
   */
  async #selectResources(
    { kinds, resources, hasOtherResources }: Block,
    first: number,
    low: number,
    high: number,
    selection: Selection,
    slice: Slice,
  ): Promise<ReadonlySet<number> | null> {
    const { glob } = selection;
    if (glob === null) return null;
    if (!hasOtherResources) {
      for (let index = low - first; index <= high - first; index++) {
        const number = resources[index] ?? 0;
        if (selection.kinds[kinds[index] ?? 0] !== 1 || selection.isTested(number)) continue;
        selection.test(number);
        await slice.pause();
      }
      return null;
    }
    const seqs = new Set<number>();
    const filter = { agentName: null, resource: glob, action: null, eventType: null, result: null };
    for (let place: number | null = low; place !== null; ) {
      await yieldToEventLoop();
      const step: Awaited<ReturnType<Store['matchEntries']>> = await this.#store.matchEntries(
        filter,
        place,
        high,
        'asc',
      );
      for (const seq of step.seqs) seqs.add(seq);
      place = step.next;
    }
    return seqs;
  }

  /** Null for the number of entries that do not exist. */
  kind(number: number): EntryKind | null {
    return this.#dictionary.kind(number);
  }

  /** The kinds of all entries that were read. */
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
      this.#blocks.clear();
      [this.#low, this.#high] = [to + 1, to];
    }
    const isUp = to > this.#high;
    const [low, high] = isUp ? [this.#high + 1, to] : [Math.min(from, this.#low - 1), this.#low - 1];
    const { rows, next } = await this.#store.readColumns(low, high, isUp ? 'asc' : 'desc');
    for (const row of rows) this.#put(row);
    if (isUp) this.#high = next === null ? high : next - 1;
    else this.#low = next === null ? low : next + 1;
    this.#dropOldest();
  }

  #put({ seq, timestamp, kind, resource }: EntryColumns): void {
    const number = blockOf(seq);
    let block = this.#blocks.get(number);
    if (block === undefined) {
      block = {
        kinds: new Uint32Array(BLOCK_ENTRIES),
        resources: new Uint32Array(BLOCK_ENTRIES),
        times: new Float64Array(BLOCK_ENTRIES),
        hasOtherResources: false,
      };
      this.#blocks.set(number, block);
    }
    const index = seq - number * BLOCK_ENTRIES;
    const resourceNumber = this.#dictionary.numberOfResource(resource);
    block.kinds[index] = this.#dictionary.numberOfKind(kind);
    block.resources[index] = resourceNumber;
    block.times[index] = Date.parse(timestamp);
    if (resourceNumber === OTHER_RESOURCE) block.hasOtherResources = true;
  }

  #dropOldest(): void {
    const lowest = this.#lowestKept(this.#high);
    if (this.#low >= lowest) return;
    for (let number = blockOf(this.#low); number < blockOf(lowest); number++) this.#blocks.delete(number);
    this.#low = lowest;
  }
}

/** Yields to the event loop when a slice of work has lasted long enough. */
class Slice {
  #endsAt = performance.now() + SLICE_MS;

  async pause(): Promise<void> {
    if (performance.now() < this.#endsAt) return;
    await yieldToEventLoop();
    this.#endsAt = performance.now() + SLICE_MS;
  }
}
