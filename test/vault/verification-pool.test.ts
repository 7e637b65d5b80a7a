/** How a verification distributes the log among its threads: in order, up to a break, and slower while the service is busy. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { RANGE_ENTRIES, verifyInParallel } from '../../src/vault/verification/pool.ts';
import { HOW, openLongVault, tamper } from './verification-log.ts';

const ENTRIES = 10 * RANGE_ENTRIES + 7;
const vault = await openLongVault({ after }, ENTRIES);

/** Verifies the log; returns the result, the entries checked, and the time that it took. */
async function run() {
  const sizes: number[] = [];
  const startedAt = performance.now();
  const found = await verifyInParallel(vault, ENTRIES, new AbortController().signal, (entries) => sizes.push(entries));
  return { found, sizes, lastedMs: performance.now() - startedAt };
}

test('every range is checked once, and only the last one is short', async () => {
  const { found, sizes } = await run();
  assert.equal('seq' in found && found.seq, ENTRIES);
  assert.deepEqual(
    sizes.toSorted((a, b) => a - b),
    [7, ...Array.from({ length: 10 }, () => RANGE_ENTRIES)],
  );
});

test('after a break no other range is checked', () =>
  tamper(vault, HOW.altered, 'seq = 1', async () => {
    const { found, sizes } = await run();
    assert.equal('entry' in found && found.entry, 1);
    // Those that the other threads had already.
    assert.equal(sizes.length < 4, true, `${sizes.length} ranges were checked`);
  }));

test('while the event loop is busy, a verification takes several times as long', async () => {
  const idle = await run();
  let isBusy = true;
  const occupy = (): void => {
    if (isBusy) setTimeout(occupy, 1);
    for (const until = performance.now() + 1; performance.now() < until; );
  };
  occupy();
  const busy = await run();
  isBusy = false;
  assert.equal(busy.lastedMs > 2 * idle.lastedMs, true, `${busy.lastedMs} ms, and ${idle.lastedMs} ms when idle`);
});
