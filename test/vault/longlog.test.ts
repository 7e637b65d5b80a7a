/** Verification of a log that is long enough to be parted among threads. */
import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import type { AuditEntry } from '../../src/core/audit.ts';
import { headMac, linkEntry } from '../../src/crypto/chain.ts';
import { ChainCheck } from '../../src/vault/chaincheck.ts';
import type { Verification } from '../../src/vault/verifier.ts';
import { type OpenedVault, openVault, put, readLog, verify } from './opened.ts';

const ENTRIES = 24_000;
/** As the service parts it. */
const RANGE = Math.ceil(ENTRIES / Math.min(4, availableParallelism()));

/** A time of its own for every entry, so that each is told from its neighbours. */
const later = ({ timestamp }: AuditEntry, seq: number): string => new Date(Date.parse(timestamp) + seq).toISOString();

/** Writes entries through the store's port until the log is `ENTRIES` long. */
async function lengthen(vault: OpenedVault): Promise<void> {
  await put(vault, 'a/b');
  const [model] = await readLog(vault.sqlite);
  assert.ok(model);
  let { seq, hmac } = model;
  while (seq < ENTRIES) {
    const entries: AuditEntry[] = [];
    while (entries.length < 2000 && seq < ENTRIES) {
      const next = {
        ...model,
        seq: ++seq,
        id: `${model.id.slice(0, 24)}${String(seq).padStart(12, '0')}`,
        timestamp: later(model, seq),
      };
      hmac = linkEntry(vault.keys.audit, hmac, next);
      entries.push({ ...next, hmac });
    }
    const turn = await vault.sqlite.openTurn([]);
    const head = { seq, hmac, mac: headMac(vault.keys.audit, seq, hmac), epoch: 0 };
    await (await turn.commit({ entries, head, changes: [], accesses: new Map() })).durable;
  }
}

/** What one look from the first entry to the last says, up to where the chain ends. */
function firstBreak(vault: OpenedVault, entries: readonly AuditEntry[]): unknown {
  const check = new ChainCheck(vault.keys);
  for (const entry of entries) {
    const broken = check.next(entry);
    if (broken !== null) return [broken.entry, broken.timestamp];
  }
  return check.point.seq === ENTRIES ? null : [check.point.seq + 1, check.point.timestamp];
}

const where = (verification: Verification) =>
  verification.isValid ? null : [verification.breakAtEntry, verification.breakAtTimestamp];

describe('a long log', { concurrency: false }, () => {
  let vault: OpenedVault;
  let database: DatabaseSync;

  const cleaning: (() => unknown)[] = [];
  before(async () => {
    vault = await openVault({ after: (work) => void cleaning.push(work as () => unknown) });
    await lengthen(vault);
    database = new DatabaseSync(vault.file);
  });
  after(async () => {
    database.close();
    for (const work of cleaning.reverse()) await work();
  });

  test('is valid as a whole, and tells its length and both ends', async () => {
    const entries = await readLog(vault.sqlite);
    assert.deepEqual(await verify(vault), {
      isValid: true,
      entries: ENTRIES,
      firstEntry: entries[0]?.timestamp,
      lastEntry: entries.at(-1)?.timestamp,
    });
  });

  const altered = 'UPDATE audit_entries SET resource = resource || char(33) WHERE seq';
  const removed = 'DELETE FROM audit_entries WHERE seq';
  const places = {
    first: 1,
    'before a border': RANGE,
    'behind a border': RANGE + 1,
    last: ENTRIES,
    inside: RANGE + 77,
  };
  const tamperings: Record<string, string> = { 'all but the first range removed': `${removed} > ${RANGE}` };
  for (const [place, seq] of Object.entries(places)) {
    tamperings[`${place}: altered`] = `${altered} = ${seq}`;
    tamperings[`${place}: removed`] = `${removed} = ${seq}`;
    tamperings[`${place}: removed with its neighbours`] = `${removed} BETWEEN ${seq - 1} AND ${seq + 1}`;
  }
  tamperings['a whole range removed'] = `${removed} BETWEEN ${RANGE - 3} AND ${2 * RANGE + 3}`;
  tamperings['two places altered'] = `${altered} IN (${RANGE + 5}, ${RANGE - 5})`;
  tamperings['the first range removed'] = `${removed} <= ${RANGE}`;

  for (const [name, sql] of Object.entries(tamperings)) {
    test(`threads find the same entry as one look from end to end: ${name}`, async () => {
      database.exec('CREATE TABLE kept AS SELECT * FROM audit_entries');
      try {
        database.exec(sql);
        const expected = firstBreak(vault, await readLog(vault.sqlite));
        assert.notEqual(expected, null);
        assert.deepEqual(where(await verify(vault)), expected);
      } finally {
        database.exec('DELETE FROM audit_entries; INSERT INTO audit_entries SELECT * FROM kept; DROP TABLE kept;');
      }
    });
  }
});
