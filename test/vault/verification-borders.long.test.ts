/** At the borders of their ranges, threads find the same breaks as a sequential scan. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { RANGE_ENTRIES, STEP_ENTRIES } from '../../src/vault/verification/work-queue.ts';
import { verify } from './fixture.ts';
import { assertSameBreak, HOW, openLongVault, tamper } from './verification-log.ts';

/** The last range ends with a step of one entry. */
const ENTRIES = 4 * RANGE_ENTRIES + STEP_ENTRIES + 1;

const vault = await openLongVault({ after }, ENTRIES);

test('an intact log is valid to its last entry', async () => {
  const found = await verify(vault);
  assert.equal(found.isValid ? found.entries : found.reason, ENTRIES);
});

const border = RANGE_ENTRIES;
const places: Record<string, readonly number[]> = {
  'the last of a range': [border],
  'the first of a range': [border + 1],
  'both sides of a border': [border, border + 1],
  'places in three ranges, told in no order': [3 * border + 7, border + 7, 2 * border + 7],
  'a border and a place far behind it': [border, 4 * border + 600],
  'what stands behind the last border': [4 * border + 1],
  'the last entry but one': [ENTRIES - 1],
};
for (const [place, seqs] of Object.entries(places)) {
  for (const [word, how] of Object.entries(HOW)) {
    test(`threads find the first break: ${place} ${word}`, () =>
      assertSameBreak(vault, ENTRIES, how, `seq IN (${seqs.join(', ')})`));
  }
}

test('a value that is not text breaks the chain at its entry', () =>
  tamper(vault, 'UPDATE audit_entries SET reason = 7', `seq = ${border + 5}`, async () => {
    const found = await verify(vault);
    assert.equal(found.isValid ? null : found.breakAtEntry, border + 5);
  }));
