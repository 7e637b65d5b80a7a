// Verification of the audit log of a database that is tampered with while the service runs.
// SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The process" and "The audit log".

import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { type AuditEntry, GENESIS_MAC, USE_FIELDS } from '../../src/core/audit.ts';
import { entryMac } from '../../src/crypto/chain.ts';
import { ENTRY_COLUMNS, executeSql, openDirectDb } from '../kit/direct-db.ts';
import type { Scope } from '../kit/directory.ts';
import { headOf } from '../kit/head.ts';
import { assertRejected, dataOf } from '../kit/responses.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

const VERIFY = '/api/v1/audit/verify';
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
  'timestamp set to an earlier one': {
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
  'the head record rolled back with the tail': {
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
