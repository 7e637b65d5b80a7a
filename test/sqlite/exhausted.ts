/**
 * A program: a store whose process temporarily has no file descriptors, and then a few more at a time, so that a thread
 * fails at each step of its start. `node exhausted.ts FILE` prints the number of pages in the write-ahead log at the
 * end of that time, and ends when the log is short again.
 */

import { closeSync, openSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { readHead } from '../../src/store/audit-log.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { commitEntries, headAt, KEY_CHECK, KEYS, T0 } from '../contract/rows.ts';

/** Eight times the threshold. */
const MANY_PAGES = 160;
const file = process.argv[2] ?? '';
const store = new SqliteStore(file, { checkpoints: { checkpointThreshold: 20 } });
await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
const look = new DatabaseSync(file);
const frames = look.prepare('PRAGMA wal_checkpoint(NOOP)');
const pages = (): number => Number(frames.get()?.['log']);
const taken: number[] = [];
try {
  for (;;) taken.push(openSync(file, 'r'));
} catch {
  // None is left.
}
await commitEntries(store, 300);
const during = pages();
for (const descriptor of taken) {
  closeSync(descriptor);
  await commitEntries(store, 40);
}
// A thread starts in its own time, so batches go on until it has written the log; the caller ends a hang.
let batches = 0;
for (; pages() >= MANY_PAGES; batches++) await commitEntries(store, 10);
const { last } = await store.run(readHead());
const missing = 300 + 40 * taken.length + 10 * batches - (last?.seq ?? 0);
process.stdout.write(`${JSON.stringify({ taken: taken.length, during, missing })}\n`);
look.close();
await store.close();
