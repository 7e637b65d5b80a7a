/**
 * The rollback marker: the newest durable log entry, in a file next to the database, so that startup detects lost
 * entries. Two slots of one page each are overwritten alternately, so that a torn write leaves the other one intact. A
 * MAC under a key of the vault shows which slots are intact, and prevents a writer of the file from forging one.
 * SOURCE: docs/formats.md, "The rollback marker".
 */
import { close, closeSync, constants, fdatasync, openSync, readFileSync, statSync, writeSync } from 'node:fs';
import { promisify } from 'node:util';
import { fieldsMac, isMac } from '../crypto/row-mac.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { checkPrivateFile, writePrivateFile } from '../platform/private-files.ts';
import { OpenedFiles, type SyncFile } from '../store/sqlite/wal-sync.ts';
import type { LastEntry } from '../store/stored-data.ts';

export type MarkedEntry = Pick<LastEntry, 'seq' | 'hmac'>;

export interface MarkerContent {
  /** Null if neither slot is intact. */
  readonly entry: MarkedEntry | null;
  /** Whether a written slot is not intact. */
  readonly hasDamagedSlot: boolean;
}

const SLOT_BYTES = 4096;
const SLOTS = [0, 1] as const;
/**
 * WHY not with each entry: it costs as much as a sync of the write-ahead log. Without the sync, a write still survives
 * the end of the process.
 */
const SYNC_INTERVAL_MS = 1000;

const closeFile = promisify(close);

interface OpenedMarker {
  readonly descriptor: number;
  readonly files: OpenedFiles;
}

export class RollbackMarker {
  readonly path: string;
  readonly #keys: Pick<VaultKeys, 'row'>;
  readonly #syncFile: SyncFile;
  #opened: OpenedMarker | null = null;
  #kept: MarkedEntry | null = null;
  /** The slot to write next. INVARIANT: the other one is on disk. */
  #slot = 0;
  #isSynced = true;
  #syncedAt = 0;
  #failures = 0;
  /** The previous write, for which the next one waits. Never rejects. */
  #last: Promise<void> = Promise.resolve();

  constructor(path: string, keys: Pick<VaultKeys, 'row'>, syncFile: SyncFile = promisify(fdatasync)) {
    this.path = path;
    this.#keys = keys;
    this.#syncFile = syncFile;
  }

  get failures(): number {
    return this.#failures;
  }

  /** The age of the newest entry that is not on disk; 0 if all entries are. */
  get unsyncedSeconds(): number {
    return this.#isSynced && this.#opened !== null ? 0 : (performance.now() - this.#syncedAt) / 1000;
  }

  /** Null if the file is missing. @throws StartupError for a link or a file of another user */
  read(): MarkerContent | null {
    if (!checkPrivateFile(this.path)) return null;
    if (statSync(this.path).size !== SLOTS.length * SLOT_BYTES) return { entry: null, hasDamagedSlot: true };
    const bytes = readFileSync(this.path);
    const texts = SLOTS.map((slot) => bytes.toString('latin1', slot * SLOT_BYTES, (slot + 1) * SLOT_BYTES).trim());
    const written = texts.filter((text) => text !== '');
    const entries = written.map((text) => this.#parse(text)).filter((entry) => entry !== null);
    const [first, ...others] = entries;
    const newest = first === undefined ? null : others.reduce((a, b) => (b.seq > a.seq ? b : a), first);
    return { entry: newest, hasDamagedSlot: newest === null || entries.length < written.length };
  }

  /**
   * Writes the entry; one write at a time. It survives the end of the process when this resolves, and a power failure
   * at most a second later. @throws a system error; StoreError if the file was deleted
   */
  keep(entry: MarkedEntry): Promise<void> {
    return this.#next(async () => {
      if (entry.seq === this.#kept?.seq && entry.hmac === this.#kept.hmac) return;
      if (this.#opened === null) this.#replace(entry);
      else await this.#overwrite(this.#opened, entry);
    });
  }

  /** Makes the last entry survive a power failure. If it fails, the next call, or the next entry, replaces the file. */
  sync(): Promise<void> {
    return this.#next(() => this.#sync());
  }

  async close(): Promise<void> {
    await this.sync();
    const opened = this.#opened;
    this.#opened = null;
    this.#kept = null;
    if (opened !== null) await closeFile(opened.descriptor);
  }

  #next(work: () => Promise<void>): Promise<void> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {
      this.#failures += 1;
    });
    return done;
  }

  /**
   * Replaces the file with the first entry of a process: its previous content was checked, or accepted by the operator.
   */
  #replace(entry: MarkedEntry): void {
    writePrivateFile(this.path, this.#toSlot(entry) + this.#toSlot(null));
    const descriptor = openSync(this.path, constants.O_RDWR | constants.O_NOFOLLOW);
    try {
      this.#opened = { descriptor, files: new OpenedFiles([this.path]) };
    } catch (error) {
      closeSync(descriptor);
      throw error;
    }
    this.#kept = entry;
    this.#slot = 1;
    this.#isSynced = true;
    this.#syncedAt = performance.now();
  }

  async #overwrite({ descriptor, files }: OpenedMarker, entry: MarkedEntry): Promise<void> {
    files.assertInPlace();
    // WHY synchronous: it takes microseconds, like a write to the database, and a thread takes ten times as long.
    const bytesWritten = writeSync(descriptor, this.#toSlot(entry), this.#slot * SLOT_BYTES, 'latin1');
    if (bytesWritten !== SLOT_BYTES) throw new Error('the rollback marker was written in part');
    this.#kept = entry;
    this.#isSynced = false;
    if (performance.now() - this.#syncedAt >= SYNC_INTERVAL_MS) await this.#sync();
  }

  async #sync(): Promise<void> {
    if (this.#opened === null) {
      if (this.#kept !== null) this.#replace(this.#kept);
      return;
    }
    if (this.#isSynced) return;
    const { descriptor } = this.#opened;
    try {
      await this.#syncFile(descriptor);
    } catch (error) {
      // WHY a new file: a second sync of this one could succeed without writing the pages.
      this.#opened = null;
      await closeFile(descriptor).catch(() => undefined);
      throw error;
    }
    this.#isSynced = true;
    this.#slot = 1 - this.#slot;
    this.#syncedAt = performance.now();
  }

  #toSlot(entry: MarkedEntry | null): string {
    const mac = entry === null ? null : fieldsMac(this.#keys.row, 'rollback-marker', [entry.seq, entry.hmac]);
    const text = entry === null ? '' : JSON.stringify({ seq: entry.seq, hmac: entry.hmac, mac });
    return `${text.padEnd(SLOT_BYTES - 1)}\n`;
  }

  #parse(text: string): MarkedEntry | null {
    try {
      const { seq, hmac, mac }: Record<string, unknown> = JSON.parse(text);
      if (typeof seq !== 'number' || typeof hmac !== 'string' || typeof mac !== 'string') return null;
      return isMac(mac, fieldsMac(this.#keys.row, 'rollback-marker', [seq, hmac])) ? { seq, hmac } : null;
    } catch {
      return null;
    }
  }
}
