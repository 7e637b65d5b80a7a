// A verification distributes the ranges of a long log among its threads, which find the same first break as a
// sequential scan, wherever it is.
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { pauseMs, RANGE_ENTRIES, verifyInParallel } from '../../src/vault/audit/verification/verification-threads.ts';
import { readLog, verify } from './fixture.ts';
import { assertSameBreak, HOW, openLongVault, tamper } from './verification-log.ts';

const BORDER = RANGE_ENTRIES;
const RANGES = 3;
/** The last range has one entry. */
const ENTRIES = RANGES * BORDER + 1;
const vault = await openLongVault({ after }, ENTRIES);

test('an intact log is valid, with its length and both ends', async () => {
  const entries = await readLog(vault.real);
  assert.deepEqual(await verify(vault), {
    isValid: true,
    entries: ENTRIES,
    firstEntry: entries[0]?.timestamp,
    lastEntry: entries.at(-1)?.timestamp,
  });
});

const { altered, removed, exchanged } = HOW;
const TAMPERINGS: readonly (readonly [how: string, which: string])[] = [
  [altered, 'seq = 1'],
  [removed, 'seq = 1'],
  [exchanged, `seq = ${BORDER}`],
  [altered, `seq = ${BORDER + 1}`],
  [removed, `seq IN (${BORDER}, ${BORDER + 1})`],
  [altered, `seq IN (${2 * BORDER + 600}, ${BORDER + 7}, ${2 * BORDER + 7})`],
  [removed, `seq = ${ENTRIES}`],
  [exchanged, `seq = ${ENTRIES}`],
  [removed, `seq <= ${BORDER}`],
  [removed, `seq BETWEEN ${BORDER - 3} AND ${2 * BORDER + 3}`],
  [removed, `seq > ${BORDER}`],
];

for (const [how, which] of TAMPERINGS) {
  test(`threads find the same break as a sequential scan: ${how.split(' ')[0]} ${which}`, () =>
    assertSameBreak(vault, ENTRIES, how, which));
}

test('a value that is not text breaks the chain at its entry', () =>
  tamper(vault, 'UPDATE audit_entries SET reason = 7', `seq = ${BORDER + 5}`, async () => {
    const found = await verify(vault);
    assert.equal(found.isValid ? null : found.breakAtEntry, BORDER + 5);
  }));

/** Verifies the log. Returns the result, and the number of entries of each range that was checked. */
async function run() {
  const sizes: number[] = [];
  const found = await verifyInParallel(vault, ENTRIES, new AbortController().signal, (entries) => sizes.push(entries));
  return { found, sizes };
}

test('every range is checked once, and only the last one is short', async () => {
  const { found, sizes } = await run();
  assert.equal('seq' in found && found.seq, ENTRIES);
  const whole = Array.from({ length: RANGES }, () => BORDER);
  assert.deepEqual(
    sizes.toSorted((a, b) => a - b),
    [1, ...whole],
  );
});

test('after a break no other range is checked', () =>
  tamper(vault, altered, 'seq = 1', async () => {
    let least = Number.POSITIVE_INFINITY;
    // The other threads may check some before the first one starts, and on a busy machine all.
    for (let tries = 0; tries < 20 && least >= RANGES; tries++) {
      const { found, sizes } = await run();
      assert.equal('entry' in found && found.entry, 1);
      least = Math.min(least, sizes.length);
    }
    assert.equal(least < RANGES, true, `${least} ranges were checked`);
  }));

test('a thread waits longer than it worked while the service is busy, and not at all otherwise', () => {
  assert.equal(pauseMs(20, 0.05), 0);
  assert.equal(pauseMs(20, 0.5) > 20, true);
});
