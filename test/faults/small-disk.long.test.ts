// A disk without room, at startup and under a running server: one line that says so, no signal, and no loss. A few
// amounts of free space, among them one at which a page of the index of the write-ahead log had no block, so that the
// process ended with SIGBUS; small-disk.weekly.test.ts has more.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sweep } from './small-disk.ts';

test('on a tmpfs without room the server says that the disk is full, and serves again with room', async (t) => {
  const trials = await sweep(t, {
    fileSystem: 'tmpfs',
    trials: [
      ['fresh', 12, false],
      ['with a log', 4, false],
    ],
  });
  assert.ok(trials.every(({ ended }) => ended === 1));
});

test('on an ext4 of small blocks no write to the index of the write-ahead log ends the process', async (t) => {
  await sweep(t, {
    fileSystem: 'ext4',
    trials: [
      ['with a log', 39, false],
      ['existing', 300, true],
    ],
  });
});
