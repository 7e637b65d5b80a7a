/** Verification of a log that is long enough for several threads: its ends, and missing ranges. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { RANGE_ENTRIES } from '../../src/vault/verification/pool.ts';
import { scaled } from '../kit/scale.ts';
import { readLog, verify } from './fixture.ts';
import { assertSameBreak, HOW, openLongVault } from './verification-log.ts';

/** The last range is short. */
const RANGES = 3;
const ENTRIES = RANGES * RANGE_ENTRIES + 400;
/** The last entry of the first range. `verification-borders.long.test.ts` tests the entries on both sides of it. */
const BORDER = RANGE_ENTRIES;

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

const { altered, removed } = HOW;
const tamperings: Record<string, readonly [how: string, which: string]> = {
  'all but the first range removed': [removed, `seq > ${BORDER}`],
  'the first range removed': [removed, `seq <= ${BORDER}`],
  'a whole range removed': [removed, `seq BETWEEN ${BORDER + 1} AND ${2 * BORDER}`],
  'a whole range removed with its neighbours': [removed, `seq BETWEEN ${BORDER - 3} AND ${2 * BORDER + 3}`],
  'the last range removed': [removed, `seq > ${RANGES * BORDER}`],
  'two places altered': [altered, `seq IN (${BORDER + 5}, ${BORDER - 5})`],
};
for (const [place, seq] of Object.entries({ first: 1, last: ENTRIES, inside: BORDER + 77 })) {
  tamperings[`${place}: altered`] = [altered, `seq = ${seq}`];
  tamperings[`${place}: removed`] = [removed, `seq = ${seq}`];
}
for (const [place, seq] of Object.entries({
  first: 1,
  'before a border': BORDER,
  'behind a border': BORDER + 1,
  inside: BORDER + 77,
  last: ENTRIES,
})) {
  tamperings[`${place}: removed with its neighbours`] = [removed, `seq BETWEEN ${seq - 1} AND ${seq + 1}`];
}

for (const [name, [how, which]] of Object.entries(tamperings).filter((_, index) => index % scaled(2, 1) === 0)) {
  test(`the threads find the same break as a sequential scan: ${name}`, () =>
    assertSameBreak(vault, ENTRIES, how, which));
}
