/** At the borders of their ranges, threads find the same breaks as a sequential scan. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { RANGE_ENTRIES } from '../../src/vault/verification/pool.ts';
import { verify } from './fixture.ts';
import { assertSameBreak, HOW, openLongVault, tamper } from './verification-log.ts';

/** The last range has one entry. */
const ENTRIES = 3 * RANGE_ENTRIES + 1;

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
  'places in three ranges, not in order': [3 * border + 7, border + 7, 2 * border + 7],
  'a border and a later place': [border, 4 * border + 600],
  'the first of the last range': [ENTRIES],
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
