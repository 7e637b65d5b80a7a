/**
 * The disk as a loss of power leaves it, built from a recording of every change of the data directory. Of the writes to
 * a file since its last sync any subset is there, sector by sector. Metadata (created, renamed and removed entries, and
 * truncations of a file) is there up to some point, and at least up to the last sync of its directory or file, as on a
 * file system with a journal.
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Dice } from '../kit/dice.ts';

const SECTOR_BYTES = 512;

/** A line of the recording; `at` is nanoseconds on the monotonic clock. */
type Change = { readonly at: number; readonly path: string } & (
  | { readonly call: 'write'; readonly offset: number; readonly start: number; readonly length: number }
  | { readonly call: 'truncate'; readonly length: number }
  | { readonly call: 'rename'; readonly to: string }
  | { readonly call: 'sync' | 'create' | 'remove' | 'mkdir' }
);

/** A recorded run: the power can be cut before each of its changes. */
export interface Recording {
  /** When each change was made, in nanoseconds on the monotonic clock, in order. */
  readonly times: readonly bigint[];
  /** Writes the directory as it may be if the power fails before the change with this index. */
  writeDisk(cut: number, into: string, dice: Dice): void;
}

interface Changes {
  /** The directory whose changes were recorded, and a copy of it from before. */
  readonly dataDir: string;
  readonly before: string;
  readonly changes: readonly Change[];
  readonly data: Buffer;
}

/** Reads a recording of supervisor.py. `before`: a copy of the directory, empty if it did not exist. */
export function readRecording(dataDir: string, before: string, file: string): Recording {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
  const all = lines.map((line): Change => JSON.parse(line));
  // Its parent's entries are not recorded.
  const changes = all.filter(({ call, path }) => path !== dataDir || call === 'sync');
  const recorded = { dataDir, before, changes, data: readFileSync(`${file}.data`) };
  return {
    times: changes.map(({ at }) => BigInt(at)),
    writeDisk: (cut, into, dice) => writeCrashDisk(recorded, cut, into, dice),
  };
}

/**
 * Reads a recording of preloaded-faults.ts: a copy of the directory before each change, as a kill leaves it, without
 * torn writes.
 */
export function readSnapshots(directory: string): Recording {
  const names = readdirSync(directory).sort();
  return {
    times: names.map((name) => BigInt(name)),
    writeDisk: (cut, into) => cpSync(join(directory, names[cut] ?? names.at(-1) ?? ''), into, { recursive: true }),
  };
}

interface FileState {
  readonly synced: Content;
  /** Writes and truncations since the last sync, in order. */
  readonly pending: FileChange[];
}

type FileChange = Extract<Change, { call: 'write' | 'truncate' }>;

/** Entries of all directories by path: a file, or null for a directory. */
type Entries = Map<string, FileState | null>;

function writeCrashDisk(recording: Changes, cut: number, into: string, dice: Dice): void {
  const { durable, pending, apply } = replay(recording, cut);
  for (const change of pending.slice(0, dice.below(pending.length + 1))) apply(durable, change);
  mkdirSync(into, { mode: 0o700 });
  const entries = [...durable].sort(([a], [b]) => (a < b ? -1 : 1));
  for (const [path, file] of entries) {
    const name = relative(recording.dataDir, path);
    // The index of the write-ahead log is mapped memory, and made again at startup.
    if (name.endsWith('-shm')) continue;
    if (file === null) mkdirSync(join(into, name), { mode: 0o700 });
    else writeFileSync(join(into, name), tear(file, recording.data, dice), { mode: 0o600 });
  }
}

/** The entries that are durable before the change with this number, and the changes of entries since. */
function replay({ dataDir, before, changes, data }: Changes, cut: number) {
  const durable = readEntries(before, dataDir);
  const current: Entries = new Map(durable);
  const pending: Change[] = [];
  const created = new Map<Change, FileState>();
  const apply = (entries: Entries, change: Change): void => applyToEntries(entries, change, created);
  for (const change of changes.slice(0, cut)) {
    const { call, path } = change;
    const file = current.get(path);
    if (call === 'write' || call === 'truncate') {
      file?.pending.push(change);
    } else if (call !== 'sync') {
      pending.push(change);
      apply(current, change);
    } else if (file) {
      for (const each of file.pending.splice(0)) file.synced.apply(each, data);
    } else {
      const last = pending.findLastIndex((each) => isEntryOf(each, path));
      for (const each of pending.splice(0, last + 1)) apply(durable, each);
    }
  }
  return { durable, pending, apply };
}

const isEntryOf = (change: Change, directory: string): boolean =>
  dirname(change.path) === directory || (change.call === 'rename' && dirname(change.to) === directory);

function readEntries(directory: string, name: string): Entries {
  const entries: Entries = new Map();
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const file = entry.isDirectory() ? null : { synced: new Content(readFileSync(path)), pending: [] };
    entries.set(join(name, relative(directory, path)), file);
  }
  return entries;
}

/** `created` has the file of each creation, so that both states of the entries share it. */
function applyToEntries(entries: Entries, change: Change, created: Map<Change, FileState>): void {
  const { call, path } = change;
  if (call === 'mkdir') entries.set(path, null);
  if (call === 'create') {
    const file = created.get(change) ?? { synced: new Content(Buffer.alloc(0)), pending: [] };
    created.set(change, file);
    entries.set(path, file);
  }
  if (call !== 'remove' && call !== 'rename') return;
  for (const [name, file] of [...entries]) {
    if (name !== path && !name.startsWith(`${path}/`)) continue;
    entries.delete(name);
    if (call === 'rename') entries.set(change.to + name.slice(path.length), file);
  }
}

/** The content of a file, which grows without a copy for each write. */
class Content {
  #buffer: Buffer;
  #length: number;

  constructor(bytes: Uint8Array) {
    this.#buffer = Buffer.from(bytes);
    this.#length = bytes.length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  apply(change: FileChange, data: Buffer): void {
    const end = change.call === 'truncate' ? change.length : Math.max(this.#length, change.offset + change.length);
    if (end < this.#length) this.#buffer.fill(0, end, this.#length);
    if (end > this.#buffer.length) {
      const larger = Buffer.alloc(2 * end);
      this.bytes.copy(larger);
      this.#buffer = larger;
    }
    this.#length = end;
    if (change.call === 'write') data.copy(this.#buffer, change.offset, change.start, change.start + change.length);
  }
}

/** Writes after a truncation that is missing are missing too: their blocks were allocated after it. */
function tear({ synced, pending }: FileState, data: Buffer, dice: Dice): Buffer {
  const torn = new Content(synced.bytes);
  const share = dice.pick([0, 0.1, 0.5, 0.9, 1]);
  for (const change of pending) {
    if (change.call === 'truncate') {
      if (dice.chance(0.5)) break;
      torn.apply(change, data);
    } else {
      for (const sector of sectorsOf(change)) if (dice.chance(share)) torn.apply(sector, data);
    }
  }
  return torn.bytes;
}

function* sectorsOf(write: Extract<Change, { call: 'write' }>): Generator<typeof write> {
  const { offset, start, length } = write;
  for (let at = 0; at < length; ) {
    const end = Math.min(length, at + SECTOR_BYTES - ((offset + at) % SECTOR_BYTES));
    yield { ...write, offset: offset + at, start: start + at, length: end - at };
    at = end;
  }
}
