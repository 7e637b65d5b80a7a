// Verification of the audit log, over a database that is tampered with while the service runs.
// SOURCE: interface 2.9 and 4.5; decisions, "The product" and "Audit".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, suite, test } from 'node:test';
import { type AuditEntry, FIRST_LINK } from '../../src/core/audit.ts';
import { headMac, linkEntry } from '../../src/crypto/chain.ts';
import { deriveKeys, parseRootKey } from '../../src/crypto/keys.ts';
import { dataOf } from '../kit/answers.ts';
import { temporaryFolder } from '../kit/folder.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const VERIFY = '/api/v1/audit/verify';
const INTACT = 'valid entries first_entry last_entry';
const BROKEN = 'valid break_at_entry break_at_timestamp message';

const service = await startTestService({ after });
const { admin } = service;
const agent = await service.agent('ci', { 'prod/*': ['retrieve'] });
await admin.post('/api/v1/credentials', { path: 'prod/key', value: 'v' });
// Entries of one millisecond could change places unseen by the rule for times.
for (let n = 0; n < 3; n++) await agent.get('/api/v1/credentials/prod/key');
const entries: AuditEntry[] = (await admin.get('/api/v1/audit?order=asc')).body.data;
const last = entries.length;
const timeOf = (seq: number) => entries[seq - 1]?.timestamp ?? null;
const verify = async (keys: string, of: TestService = service) => dataOf(await of.admin.get(VERIFY), 200, keys);

function openDatabase({ dataDir }: Pick<TestService, 'dataDir'>): DatabaseSync {
  return new DatabaseSync(join(dataDir, 'leasehold.db'));
}

function auditKeyOf({ dataDir }: TestService) {
  const rootKey = parseRootKey(readFileSync(join(dataDir, 'root.key'), 'utf8'));
  return deriveKeys(rootKey ?? assert.fail('no root key')).audit;
}

/** Tampers, looks, and puts the log back as it was. */
async function tamper(sql: string, look: () => Promise<void>): Promise<void> {
  const database = openDatabase(service);
  database.exec('CREATE TEMP TABLE kept_entries AS SELECT * FROM audit_entries');
  database.exec('CREATE TEMP TABLE kept_head AS SELECT * FROM audit_head');
  try {
    database.exec(sql);
    await look();
  } finally {
    database.exec('DELETE FROM audit_entries; INSERT INTO audit_entries SELECT * FROM kept_entries');
    database.exec('DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM kept_head');
    database.close();
  }
}

test('an intact log: valid, the number of entries, and the times of the first and the last', async () => {
  assert.deepEqual(await verify(INTACT), {
    valid: true,
    entries: last,
    first_entry: timeOf(1),
    last_entry: timeOf(last),
  });
});

const COLUMNS = ['id', 'event_type', 'agent_name', 'resource', 'action', 'result', 'hmac'] as const;
const NULLABLE = ['policy_name', 'lease_id', 'reason', 'request_id', 'remote_addr'] as const;

/** Each names the first broken entry, and its time as it stands there. */
const ALTERED: Readonly<Record<string, { sql: string; seq: number; timestamp?: string | null }>> = {
  ...Object.fromEntries(
    [...COLUMNS, ...NULLABLE].map((column) => [
      `${column} altered`,
      { sql: `UPDATE audit_entries SET ${column} = coalesce(${column}, '') || 'x' WHERE seq = 4`, seq: 4 },
    ]),
  ),
  ...Object.fromEntries(
    NULLABLE.map((column) => [
      `${column} emptied or made null`,
      {
        sql: `UPDATE audit_entries SET ${column} = CASE WHEN ${column} IS NULL THEN '' ELSE NULL END WHERE seq = 4`,
        seq: 4,
      },
    ]),
  ),
  'timestamp moved on': {
    sql: `UPDATE audit_entries SET timestamp = '2999-01-01T00:00:00.000Z' WHERE seq = ${last}`,
    seq: last,
    timestamp: '2999-01-01T00:00:00.000Z',
  },
  'timestamp moved back': {
    sql: `UPDATE audit_entries SET timestamp = '1999-01-01T00:00:00.000Z' WHERE seq = 4`,
    seq: 4,
    timestamp: '1999-01-01T00:00:00.000Z',
  },
  'an entry altered and the next one too': {
    sql: `UPDATE audit_entries SET resource = 'x' WHERE seq IN (3, 4)`,
    seq: 3,
  },
  'what two entries say exchanged': {
    sql: `UPDATE audit_entries SET hmac = (SELECT e.hmac FROM audit_entries e WHERE e.seq = 9 - audit_entries.seq)
          WHERE seq IN (4, 5)`,
    seq: 4,
  },
  'an entry written once more at the end': {
    sql: `INSERT INTO audit_entries SELECT ${last + 1}, id, timestamp, event_type, agent_name, resource, action, result,
            policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = ${last}`,
    seq: last + 1,
    timestamp: timeOf(last),
  },
  'the first entry removed': { sql: 'DELETE FROM audit_entries WHERE seq = 1', seq: 1, timestamp: timeOf(2) },
  'an entry removed and the others moved up': {
    sql: 'DELETE FROM audit_entries WHERE seq = 4; UPDATE audit_entries SET seq = seq - 1 WHERE seq > 4',
    seq: 4,
    timestamp: timeOf(5),
  },
  'the last entry cut off': {
    sql: `DELETE FROM audit_entries WHERE seq = ${last}`,
    seq: last,
    timestamp: timeOf(last - 1),
  },
  'the last three cut off': {
    sql: `DELETE FROM audit_entries WHERE seq > ${last - 3}`,
    seq: last - 2,
    timestamp: timeOf(last - 3),
  },
  'every entry removed': { sql: 'DELETE FROM audit_entries', seq: 1, timestamp: null },
  'the head record removed': { sql: 'DELETE FROM audit_head', seq: last + 1, timestamp: timeOf(last) },
  'the head record moved back with the tail': {
    sql: `DELETE FROM audit_entries WHERE seq = ${last}; UPDATE audit_head SET seq = ${last - 1},
            hmac = (SELECT hmac FROM audit_entries WHERE seq = ${last - 1})`,
    seq: last,
    timestamp: timeOf(last - 1),
  },
};

suite('verify names the first broken entry', () => {
  for (const [name, { sql, seq, timestamp }] of Object.entries(ALTERED)) {
    test(`verify names the first broken entry: ${name}`, async () => {
      await tamper(sql, async () => {
        const { message, ...rest } = await verify(BROKEN);
        const at = timestamp === undefined ? timeOf(seq) : timestamp;
        assert.deepEqual(rest, { valid: false, break_at_entry: seq, break_at_timestamp: at });
        assert.match(message, new RegExp(`broken at entry ${seq}\\b`));
      });
      assert.equal((await verify(INTACT)).entries, last);
    });
  }

  for (let seq = 2; seq < last; seq++) {
    test(`a missing entry is reported at its own ordinal: ${seq}`, async () => {
      await tamper(`DELETE FROM audit_entries WHERE seq = ${seq}`, async () => {
        assert.equal((await verify(BROKEN)).break_at_entry, seq);
      });
    });
  }
});

test('times that fall are found, even where whoever altered them had the key and every link fits', async () => {
  for (const [at, isValid] of [
    [timeOf(4), true],
    ['1999-01-01T00:00:00.000Z', false],
  ] as const) {
    await tamper('', async () => {
      const database = openDatabase(service);
      const update = database.prepare('UPDATE audit_entries SET timestamp = ?, hmac = ? WHERE seq = ?');
      let hmac = FIRST_LINK;
      for (const entry of entries) {
        const timestamp = entry.seq === 4 ? (at ?? '') : entry.timestamp;
        hmac = linkEntry(auditKeyOf(service), hmac, { ...entry, timestamp });
        update.run(timestamp, hmac, entry.seq);
      }
      const mac = headMac(auditKeyOf(service), last, hmac);
      database.prepare('UPDATE audit_head SET hmac = ?, mac = ?').run(hmac, mac);
      database.close();
      const { body } = await admin.get(VERIFY);
      assert.deepEqual([body.data.valid, body.data.break_at_entry], [isValid, isValid ? undefined : 4]);
    });
  }
});

test('the service goes on over an altered log, and the break stays where it is', async () => {
  await tamper("UPDATE audit_entries SET resource = 'x' WHERE seq = 2", async () => {
    assert.equal((await verify(BROKEN)).break_at_entry, 2);
    assert.equal((await verify(BROKEN)).break_at_entry, 2);
  });
});

test('an empty log is valid: 0 entries and nulls', async (t) => {
  const other = await startTestService(t);
  const database = openDatabase(other);
  // The start is recorded: the head record of before it is made here.
  const mac = headMac(auditKeyOf(other), 0, FIRST_LINK);
  database.exec('DELETE FROM audit_entries');
  database.prepare('UPDATE audit_head SET seq = 0, hmac = ?, mac = ?').run(FIRST_LINK, mac);
  database.close();
  assert.deepEqual(await verify(INTACT, other), { valid: true, entries: 0, first_entry: null, last_entry: null });
});

test('a head and a last row that disagree at start: one line, verify reports it, and the gap stays visible for ever', async (t) => {
  const folder = join(temporaryFolder(t), 'data');
  const first = await startTestService(t, [], folder);
  for (let n = 0; n < 4; n++) await first.admin.get('/api/v1/credentials');
  await first.stop();
  const database = openDatabase(first);
  const { n } = { n: 0, ...database.prepare('SELECT count(*) AS n FROM audit_entries').get() };
  database.exec(`DELETE FROM audit_entries WHERE seq > ${Number(n) - 2}`);
  database.close();
  const second = await startProcess(t, folder);
  const warnings = second
    .output()
    .split('\n')
    .filter((line) => line.startsWith('WARNING'));
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /head record .*last row .*disagree/);
  await second.end('SIGTERM');
  const third = await startTestService(t, [], folder);
  const entry = Number(n) - 1;
  assert.equal((await verify(BROKEN, third)).break_at_entry, entry);
  for (let more = 0; more < 3; more++) await third.admin.get('/api/v1/credentials');
  assert.equal((await verify(BROKEN, third)).break_at_entry, entry);
  const { data } = (await third.admin.get('/api/v1/audit?order=asc&limit=1000')).body;
  const seqs: number[] = data.map(({ seq }: { seq: number }) => seq);
  assert.equal(seqs.includes(entry) || seqs.includes(entry + 1), false);
  assert.equal(seqs.includes(entry + 2), true);
});
