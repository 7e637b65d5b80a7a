/** A verification distributes the log among its threads: in order, up to a break, and slower if the service is busy. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pauseMs, RANGE_ENTRIES, verifyInParallel } from '../../src/vault/verification/pool.ts';
import { HOW, openLongVault, tamper } from './verification-log.ts';

const ENTRIES = 6 * RANGE_ENTRIES + 7;
const vault = await openLongVault({ after }, ENTRIES);

/** Verifies the log. Returns the result, and the number of entries of each range that was checked. */
async function run() {
  const sizes: number[] = [];
  const found = await verifyInParallel(vault, ENTRIES, new AbortController().signal, (entries) => sizes.push(entries));
  return { found, sizes };
}

test('every range is checked once, and only the last one is short', async () => {
  const { found, sizes } = await run();
  assert.equal('seq' in found && found.seq, ENTRIES);
  assert.deepEqual(
    sizes.toSorted((a, b) => a - b),
    [7, ...Array.from({ length: 6 }, () => RANGE_ENTRIES)],
  );
});

test('after a break no other range is checked', () =>
  tamper(vault, HOW.altered, 'seq = 1', async () => {
    let least = Number.POSITIVE_INFINITY;
    // The other threads may check some before the first one starts, and on a busy machine all.
    for (let tries = 0; tries < 20 && least >= 6; tries++) {
      const { found, sizes } = await run();
      assert.equal('entry' in found && found.entry, 1);
      least = Math.min(least, sizes.length);
    }
    assert.equal(least < 6, true, `${least} ranges were checked`);
  }));

test('a thread waits longer than it worked while the service is busy, and not at all otherwise', () => {
  assert.equal(pauseMs(20, 0.05), 0);
  assert.equal(pauseMs(20, 0.5) > 20, true);
});
