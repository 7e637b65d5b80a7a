/** What threads find at the borders of their ranges is what one look from end to end finds. */
import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { ChainCheck } from '../../src/vault/chaincheck.ts';
import { RANGE_ENTRIES, STEP_ENTRIES } from '../../src/vault/rangeshare.ts';
import { type OpenedVault, openVault, put, verify } from './opened.ts';
import { lengthenLog } from './verification_log.ts';

/** The last range ends with a step of one entry. */
const ENTRIES = 4 * RANGE_ENTRIES + STEP_ENTRIES + 1;

describe('the borders of ranges', { concurrency: false }, () => {
  let vault: OpenedVault;
  const cleaning: (() => unknown)[] = [];
  before(async () => {
    vault = await openVault({ after: (work) => void cleaning.push(work as () => unknown) });
    await put(vault, 'a/b');
    await lengthenLog(vault.sqlite, vault.keys, ENTRIES);
  });
  after(async () => {
    for (const work of cleaning.reverse()) await work();
  });

  test('an intact log is valid to its last entry', async () => {
    const found = await verify(vault);
    assert.equal(found.isValid ? found.entries : found.why, ENTRIES);
  });

  /** Does it to the log, looks, and puts the entries back that it touched. */
  async function tamper(seqs: readonly number[], sql: string, look: () => Promise<void>): Promise<void> {
    const database = new DatabaseSync(vault.file);
    const list = seqs.join(', ');
    database.exec(`CREATE TEMP TABLE kept AS SELECT * FROM audit_entries WHERE seq IN (${list})`);
    try {
      database.exec(sql.replace('?', `IN (${list})`));
      await look();
    } finally {
      database.exec(`DELETE FROM audit_entries WHERE seq IN (${list}); INSERT INTO audit_entries SELECT * FROM kept`);
      database.close();
    }
  }

  /** What one look from the first entry on says, up to behind the last that was touched. */
  async function firstBreak(last: number): Promise<[number, string | null] | null> {
    const check = new ChainCheck(vault.keys);
    for (const entry of await vault.sqlite.readEntries(1, last + 2, last + 2)) {
      const broken = check.next(entry);
      if (broken !== null) return [broken.entry, broken.timestamp];
    }
    return null;
  }

  const altered = 'UPDATE audit_entries SET resource = resource || char(33) WHERE seq ?';
  const removed = 'DELETE FROM audit_entries WHERE seq ?';
  const exchanged = `UPDATE audit_entries SET hmac = 'A' || substr(hmac, 2) WHERE seq ?`;
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
    for (const [how, sql] of Object.entries({ altered, removed, exchanged })) {
      test(`threads find the first break: ${place} ${how}`, async () => {
        await tamper(seqs, sql, async () => {
          const expected = await firstBreak(Math.min(...seqs));
          assert.notEqual(expected, null);
          const found = await verify(vault);
          assert.deepEqual(found.isValid ? null : [found.breakAtEntry, found.breakAtTimestamp], expected);
        });
      });
    }
  }

  test('a value that is no text any more breaks the chain where it stands', async () => {
    await tamper([border + 5], 'UPDATE audit_entries SET reason = 7 WHERE seq ?', async () => {
      const found = await verify(vault);
      assert.equal(found.isValid ? null : found.breakAtEntry, border + 5);
    });
  });
});
