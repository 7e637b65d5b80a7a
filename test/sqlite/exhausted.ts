/**
 * A program: a store whose process runs out of file descriptors for a while. `node exhausted.ts FILE`. Prints how many pages are in
 * the write-ahead log at the end of that while, and later.
 */
import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { anEntry, commit, headAt, KEY_CHECK, T0 } from '../contract/rows.ts';

const file = process.argv[2] ?? '';
const store = new SqliteStore(file, { worthFrames: 20 });
await store.initialise(KEY_CHECK, headAt(0), T0);
let seq = 0;
const write = async (batches: number): Promise<void> => {
  for (let i = 0; i < batches; i++) {
    seq += 1;
    await commit(store, { entries: [anEntry(seq)] });
  }
};
const look = new DatabaseSync(file);
const frames = look.prepare('PRAGMA wal_checkpoint(NOOP)');
const pages = (): number => Number(frames.get()?.['log']);
const taken: number[] = [];
try {
  for (;;) taken.push(openSync(file, 'r'));
} catch {
  // None is left.
}
await write(300);
const during = pages();
for (const descriptor of taken) closeSync(descriptor);
await write(300);
process.stdout.write(`${JSON.stringify({ taken: taken.length, during, after: pages(), seq })}\n`);
look.close();
await store.close();
