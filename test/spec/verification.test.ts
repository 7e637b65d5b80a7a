// Verification of the audit log of a database that is tampered with while the service runs.
// SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The process" and "The audit log".

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AuditEntry, GENESIS_MAC, USE_FIELDS } from '../../src/core/audit.ts';
import { entryMac } from '../../src/crypto/chain.ts';
import { createClient } from '../kit/client.ts';
import { ENTRY_COLUMNS, executeSql, openDirectDb, selectRows } from '../kit/direct-db.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { headOf } from '../kit/head.ts';
import { startProcess } from '../kit/process.ts';
import { assertRejected, dataOf } from '../kit/responses.ts';
import { tryRolledBack } from '../kit/rolled-back.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { openStore, STORE } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import { lengthenLog } from '../vault/verification-log.ts';

const VERIFY = '/api/v1/audit/verify';
const PROGRESS = '/api/v1/audit/verify/progress';
/** Whether several nodes may share the store. */
const isShared = STORE === 'postgres';
const INTACT = 'valid entries first_entry last_entry';
const BROKEN = 'valid break_at_entry break_at_timestamp message';

const service = await startTestService({ after });
const { admin } = service;
const agent = await service.agent('ci', { 'prod/*': ['retrieve'] });
await admin.post('/api/v1/credentials', { path: 'prod/key', value: 'v' });
// The timestamp rule cannot detect swapped entries of the same millisecond.
for (let n = 0; n < 3; n++) await agent.get('/api/v1/credentials/prod/key');
// The list has no states, which the MACs cover.
const exported = (await admin.get('/api/v1/audit/export')).text.trimEnd();
const entries: AuditEntry[] = exported.split('\n').map((line) => JSON.parse(line));
const last = entries.length;
const timeOf = (seq: number) => entries[seq - 1]?.timestamp ?? null;
const verify = async (keys: string, of: TestService = service) => dataOf(await of.admin.get(VERIFY), 200, keys);

async function auditKeyOf({ dataDir }: Pick<TestService, 'dataDir'>) {
  return (await vaultKeysOf(dataDir)).audit;
}

const auditKey = await auditKeyOf(service);

/** Tampers with the log, verifies it, and restores it. */
async function tamper(sql: string, look: () => Promise<void>): Promise<void> {
  const outside = await openDirectDb(service.dataDir);
  await outside.run('CREATE TEMP TABLE kept_entries AS SELECT * FROM audit_entries ORDER BY seq');
  await outside.run('CREATE TEMP TABLE kept_head AS SELECT * FROM audit_head');
  try {
    await outside.run(sql);
    await look();
  } finally {
    await outside.run('DELETE FROM audit_entries; INSERT INTO audit_entries SELECT * FROM kept_entries');
    await outside.run('DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM kept_head');
    await outside.close();
  }
}

test('an intact log is valid, with its number of entries and the times of the first and the last', async () => {
  assert.deepEqual(await verify(INTACT), {
    valid: true,
    entries: last,
    first_entry: timeOf(1),
    last_entry: timeOf(last),
  });
});

const COLUMNS = ['id', 'event_type', 'agent_name', 'resource', 'action', 'result', 'hmac'] as const;
const NULLABLE = ['policy_name', 'lease_id', 'reason', 'request_id', 'remote_addr'] as const;

const isNumeric = (column: string) => /^(?:status|bytes_\w+|redactions)$/.test(column);

interface Alteration {
  readonly sql: string;
  /** The first broken entry and its stored time. */
  readonly seq: number;
  readonly timestamp?: string | null;
  /** The last entry that a node has seen is deleted: on a shared log the node then rejects requests. */
  readonly takesEnd?: true;
}

const ALTERED: Readonly<Record<string, Alteration>> = {
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
  ...Object.fromEntries(
    USE_FIELDS.map((column) => [
      `${column} set in an entry that is not about a use`,
      { sql: `UPDATE audit_entries SET ${column} = ${isNumeric(column) ? 0 : "''"} WHERE seq = 4`, seq: 4 },
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
    sql: `INSERT INTO audit_entries (${ENTRY_COLUMNS}) SELECT ${last + 1}, id, timestamp, event_type, agent_name, resource, action, result,
            policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = ${last}`,
    seq: last + 1,
    timestamp: timeOf(last),
  },
  'the first entry removed': { sql: 'DELETE FROM audit_entries WHERE seq = 1', seq: 1, timestamp: timeOf(2) },
  'an entry removed and the others moved up': {
    // Through unused sequence numbers: PostgreSQL checks uniqueness row by row.
    sql: 'DELETE FROM audit_entries WHERE seq = 4; UPDATE audit_entries SET seq = seq + 1000000 WHERE seq > 4; UPDATE audit_entries SET seq = seq - 1000001 WHERE seq > 1000000',
    seq: 4,
    timestamp: timeOf(5),
    takesEnd: true,
  },
  'the last entry cut off': {
    sql: `DELETE FROM audit_entries WHERE seq = ${last}`,
    seq: last,
    timestamp: timeOf(last - 1),
    takesEnd: true,
  },
  'the last three cut off': {
    sql: `DELETE FROM audit_entries WHERE seq > ${last - 3}`,
    seq: last - 2,
    timestamp: timeOf(last - 3),
    takesEnd: true,
  },
  'every entry removed': { sql: 'DELETE FROM audit_entries', seq: 1, timestamp: null, takesEnd: true },
  'the head record removed': {
    sql: 'DELETE FROM audit_head',
    seq: last + 1,
    timestamp: timeOf(last),
    takesEnd: true,
  },
  'the head record moved back with the tail': {
    sql: `DELETE FROM audit_entries WHERE seq = ${last}; UPDATE audit_head SET seq = ${last - 1},
            hmac = (SELECT hmac FROM audit_entries WHERE seq = ${last - 1})`,
    seq: last,
    timestamp: timeOf(last - 1),
    takesEnd: true,
  },
};

/** A node that has seen the entry rejects requests; a node started now reports where the log is broken. */
async function assertToldByAnotherNode(scope: Scope, seq: number): Promise<void> {
  assertRejected(await admin.get(VERIFY), 'UNAVAILABLE');
  assert.equal((await service.anonymous.get('/api/v1/health')).status, 503);
  const node = await startAnotherNode(scope, service);
  assert.match(node.warnings.join(), /head record/);
  assert.equal((await verify(BROKEN, node)).break_at_entry, seq);
  await node.stop();
}

suite('verify names the first broken entry', () => {
  for (const [name, { sql, seq, timestamp, takesEnd }] of Object.entries(ALTERED)) {
    test(`verify names the first broken entry: ${name}`, async (t) => {
      await tamper(sql, async () => {
        if (takesEnd && isShared) return assertToldByAnotherNode(t, seq);
        const { message, ...rest } = await verify(BROKEN);
        const at = timestamp === undefined ? timeOf(seq) : timestamp;
        assert.deepEqual(rest, { valid: false, break_at_entry: seq, break_at_timestamp: at });
        assert.match(message, new RegExp(`broken at entry ${seq}\\b`));
      });
      assert.equal((await verify(INTACT)).entries, last);
    });
  }

  for (let seq = 2; seq < last; seq++) {
    test(`a missing entry is reported at its own sequence number: ${seq}`, async () => {
      await tamper(`DELETE FROM audit_entries WHERE seq = ${seq}`, async () => {
        assert.equal((await verify(BROKEN)).break_at_entry, seq);
      });
    });
  }
});

test('decreasing times are found even when every entry MAC is valid', async (t) => {
  for (const [at, isValid] of [
    [timeOf(4), true],
    ['1999-01-01T00:00:00.000Z', false],
  ] as const) {
    await tamper('', async () => {
      const updates: string[] = [];
      const macs: string[] = [];
      for (const entry of entries) {
        const timestamp = entry.seq === 4 ? (at ?? '') : entry.timestamp;
        const hmac = entryMac(auditKey, macs.at(-1) ?? GENESIS_MAC, { ...entry, timestamp });
        macs.push(hmac);
        updates.push(`UPDATE audit_entries SET timestamp = '${timestamp}', hmac = '${hmac}' WHERE seq = ${entry.seq}`);
      }
      const { hmac, mac, epoch, tree, control } = headOf(auditKey, macs);
      const head = `hmac = '${hmac}', mac = '${mac}', epoch = ${epoch}, tree = '${tree}', control = '${control}'`;
      updates.push(`UPDATE audit_head SET ${head}`);
      await executeSql(service.dataDir, updates.join(';'));
      // Every entry MAC differs, also that of the last entry the service has seen.
      const node = isShared ? await startAnotherNode(t, service) : service;
      const { body } = await node.admin.get(VERIFY);
      assert.deepEqual([body.data.valid, body.data.break_at_entry], [isValid, isValid ? undefined : 4]);
      if (node !== service) await node.stop();
    });
  }
});

test('the service keeps running over an altered log, and the break stays where it is', async () => {
  await tamper("UPDATE audit_entries SET resource = 'x' WHERE seq = 2", async () => {
    assert.equal((await verify(BROKEN)).break_at_entry, 2);
    assert.equal((await verify(BROKEN)).break_at_entry, 2);
  });
});

test('a head record that disagrees with the last row at start is reported in one line, and the gap stays visible', async (t) => {
  const directory = join(temporaryDirectory(t), 'data');
  const first = await startTestService(t, [], directory);
  for (let n = 0; n < 4; n++) await first.admin.get('/api/v1/credentials');
  await first.stop();
  const [{ n } = { n: 0 }] = await selectRows(directory, 'SELECT count(*) AS n FROM audit_entries');
  await executeSql(directory, `DELETE FROM audit_entries WHERE seq > ${Number(n) - 2}`);
  const flags = isShared ? ['--accept-rollback'] : [];
  if (isShared) await tryRolledBack(t, directory, /has lost entries of the log/);
  const second = await startProcess(t, directory, flags);
  const warnings = second
    .output()
    .split('\n')
    .filter((line) => line.startsWith('WARNING'));
  assert.equal(warnings.length, 1 + flags.length);
  assert.match(warnings.at(-1) ?? '', /head record .*last row .*disagree/);
  await second.end('SIGTERM');
  const third = await startTestService(t, [], directory);
  const entry = Number(n) - 1;
  assert.equal((await verify(BROKEN, third)).break_at_entry, entry);
  for (let more = 0; more < 3; more++) await third.admin.get('/api/v1/credentials');
  assert.equal((await verify(BROKEN, third)).break_at_entry, entry);
  const { data } = (await third.admin.get('/api/v1/audit?order=asc&limit=1000')).body;
  const seqs: number[] = data.map(({ seq }: { seq: number }) => seq);
  assert.equal(seqs.includes(entry) || seqs.includes(entry + 1), false);
  assert.equal(seqs.includes(entry + 2), true);
});

const LONG = 60_000;
const LOOK_MS = 5;

/** A vault with a long log, which one service after the other opens. */
const longLog = makeLongLog({ after });

async function makeLongLog(scope: Scope): Promise<string> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  await (await startTestService(scope, [], dataDir)).stop();
  const store = await openStore(dataDir);
  await lengthenLog(store, { audit: await auditKeyOf({ dataDir }) }, LONG);
  await store.close();
  return dataDir;
}

test('an administrator sees the progress of a verification, and requests during it share the next run', async (t) => {
  const { admin, anonymous, agent } = await startTestService(t, [], await longLog);
  const look = async () => dataOf(await admin.get(PROGRESS), 200, 'running entries_checked entries_total started_at');
  const nothing = { running: false, entries_checked: null, entries_total: null, started_at: null };
  assert.deepEqual(await look(), nothing);
  let isOver = false;
  const verifying = Promise.all([admin.get(VERIFY), admin.get(VERIFY), admin.get(VERIFY)]);
  void verifying.then(() => (isOver = true));
  const seen = new Map<string, number[]>();
  while (!isOver) {
    const { running, entries_checked: checked, entries_total: total, started_at: startedAt } = await look();
    if (!running) continue;
    assert.equal(checked <= total && total >= LONG, true, `${checked} of ${total}`);
    assert.match(startedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    seen.set(startedAt, [...(seen.get(startedAt) ?? []), checked]);
    // WHY: verification is throttled while requests arrive continuously.
    await sleep(LOOK_MS);
  }
  for (const answer of await verifying) assert.equal(dataOf(answer, 200, INTACT).valid, true);
  assert.equal(seen.size, 2, 'the second and the third share a verification');
  for (const checked of seen.values()) {
    assert.equal(new Set(checked).size > 3, true, `it did not grow: ${checked}`);
    assert.deepEqual(
      checked,
      checked.toSorted((a, b) => a - b),
    );
  }
  assert.deepEqual(await look(), nothing);
  assert.equal((await anonymous.get(PROGRESS)).status, 401);
  assert.equal((await (await agent('curious')).get(PROGRESS)).status, 403);
});

test('a verification is cancelled when its client disconnects, and is not logged as an error', async (t) => {
  const { address, adminToken, output, end } = await startProcess(t, await longLog, ['--log-level', 'info']);
  const admin = createClient(address, adminToken);
  const look = async () => (await admin.get(PROGRESS)).body.data;
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${adminToken}` };
  const asked = fetch(address + VERIFY, { headers, signal: leaving.signal });
  while (!(await look()).running);
  leaving.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  let most = 0;
  for (let progress = await look(); progress.running; progress = await look()) {
    most = Math.max(most, progress.entries_checked);
  }
  assert.equal(most < LONG / 2, true, `it had checked ${most}`);
  assert.equal((await admin.get(VERIFY)).body.data.valid, true);
  assert.equal(await end('SIGTERM'), 0);
  assert.doesNotMatch(output(), /mistake|"level":[56]0/);
});

test('a stop completes a running verification', async (t) => {
  const dataDir = await longLog;
  // The threads of a verification have the lowest priority: on a busy machine they take longer than the usual 10 s.
  const service = await startTestService(t, [], dataDir, undefined, { stopMs: 120_000 });
  const verifying = service.admin.get(VERIFY);
  while (!(await service.admin.get(PROGRESS)).body.data.running);
  await service.stop();
  assert.equal(dataOf(await verifying, 200, INTACT).valid, true);
});

test('a stop cancels a verification whose client disconnected, and the exit code is 0', async (t) => {
  const service = await startProcess(t, await longLog);
  const admin = createClient(service.address, service.adminToken);
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${service.adminToken}` };
  const asked = fetch(service.address + VERIFY, { headers, signal: leaving.signal });
  asked.catch(() => undefined);
  while (!(await admin.get(PROGRESS)).body.data.running);
  const ended = service.end('SIGTERM');
  leaving.abort();
  assert.equal(await ended, 0);
  await assert.rejects(asked);
  assert.doesNotMatch(service.output(), /mistake/);
});
