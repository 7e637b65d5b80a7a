// The head record and the end of the log after tampering while the service was stopped: it starts with a one-line
// warning, and verification reports the break permanently, whatever is written afterwards.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { exportAuditKeys } from '../../src/crypto/chain.ts';
import { StartupError } from '../../src/platform/errors.ts';
import { runVerifier } from '../crypto/python-verifier.ts';
import { dumpDatabase, executeSql, selectRows } from '../kit/direct-db.ts';
import { tryRolledBack } from '../kit/rolled-back.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

interface Tampering {
  readonly what: string;
  /** `last` is the sequence number of the log's last entry then. */
  readonly sql: (last: number) => string;
  /** The sequence number of the permanent break. */
  readonly breakAt: (last: number) => number;
  /**
   * The last entry is missing or replaced. A node of a shared log then starts only with an explicit flag; so does the
   * embedded store if the head record does not name that entry either.
   */
  readonly takesEnd?: 'rows alone' | 'rows and head';
  /** Another start follows, after which the independent verifier reports the same break. */
  readonly startsAgain?: true;
}

/** The start and one credential stored. */
const OLD_SEQ = 2;
const OLD_HEAD =
  'UPDATE audit_head SET (seq, hmac, mac, epoch, tree, control) = (SELECT seq, hmac, mac, epoch, tree, control FROM old_head); DROP TABLE old_head;';
const FORGED_MAC = "mac = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='";

const TAMPERINGS: readonly Tampering[] = [
  {
    what: 'the end of the log is cut off',
    sql: (last) => `DELETE FROM audit_entries WHERE seq > ${last - 2}`,
    breakAt: (last) => last - 1,
    takesEnd: 'rows alone',
    startsAgain: true,
  },
  { what: 'the head record is removed', sql: () => 'DELETE FROM audit_head', breakAt: (last) => last + 1 },
  {
    what: 'the head record’s MAC is forged',
    sql: () => `UPDATE audit_head SET ${FORGED_MAC}`,
    breakAt: (last) => last + 1,
  },
  {
    what: 'the end is cut off and the head record made to fit',
    sql: (last) =>
      `DELETE FROM audit_entries WHERE seq > ${last - 2};
       UPDATE audit_head SET seq = ${last - 2}, hmac = (SELECT hmac FROM audit_entries WHERE seq = ${last - 2}), ${FORGED_MAC}`,
    breakAt: (last) => last - 1,
    takesEnd: 'rows and head',
  },
  {
    what: 'the end is cut off and the head record removed',
    sql: (last) => `DELETE FROM audit_entries WHERE seq > ${last - 4}; DELETE FROM audit_head`,
    breakAt: (last) => last - 3,
    takesEnd: 'rows and head',
  },
  {
    what: 'the log and its head record are both of an earlier time, and only the leases are not',
    sql: () => `DELETE FROM audit_entries WHERE seq > (SELECT seq FROM old_head); ${OLD_HEAD}`,
    breakAt: () => OLD_SEQ + 1,
    takesEnd: 'rows and head',
    startsAgain: true,
  },
  {
    what: 'the head record is an older one',
    sql: () => OLD_HEAD,
    breakAt: (last) => last + 1,
    takesEnd: 'rows and head',
  },
  {
    what: 'the hmac of the last entry is altered',
    sql: (last) => `UPDATE audit_entries SET hmac = (SELECT hmac FROM audit_entries WHERE seq = 1) WHERE seq = ${last}`,
    breakAt: (last) => last,
    takesEnd: 'rows alone',
  },
  {
    what: 'an entry is added behind the end',
    sql: (last) =>
      `INSERT INTO audit_entries (seq, id, timestamp, event_type, agent_name, resource, action, result,
         policy_name, lease_id, reason, request_id, remote_addr, hmac) SELECT ${last + 1}, id, timestamp, event_type, agent_name, resource, action, result,
         policy_name, lease_id, reason, request_id, remote_addr, hmac FROM audit_entries WHERE seq = ${last}`,
    breakAt: (last) => last + 1,
  },
  { what: 'all entries are removed', sql: () => 'DELETE FROM audit_entries', breakAt: () => 1, takesEnd: 'rows alone' },
  {
    what: 'all entries and the head record are removed',
    sql: () => 'DELETE FROM audit_entries; DELETE FROM audit_head',
    breakAt: () => 1,
    takesEnd: 'rows and head',
  },
];

async function lastEntry(dataDir: string): Promise<number> {
  const [last] = await selectRows(dataDir, 'SELECT max(seq) AS seq FROM audit_entries');
  return Number(last?.['seq']);
}

/** A stopped vault with some entries; resolves to its directory and the sequence number of its last entry. */
async function stoppedVault(t: TestContext, retrievals = 4): Promise<{ dataDir: string; last: number }> {
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'v' });
  const keep = 'CREATE TABLE old_head AS SELECT seq, hmac, mac, epoch, tree, control FROM audit_head';
  await executeSql(service.dataDir, keep);
  for (let i = 0; i < retrievals; i++) await service.admin.get('/api/v1/credentials/prod/key');
  await service.stop();
  return { dataDir: service.dataDir, last: await lastEntry(service.dataDir) };
}

async function verification(service: TestService) {
  return (await service.admin.get('/api/v1/audit/verify')).body.data;
}

for (const { what, sql, breakAt, takesEnd, startsAgain } of TAMPERINGS) {
  test(`it starts with one warning, and verification reports the break permanently: ${what}`, async (t) => {
    const { dataDir, last } = await stoppedVault(t);
    await executeSql(dataDir, sql(last));
    const isRefused = takesEnd === 'rows and head' || (takesEnd === 'rows alone' && STORE === 'postgres');
    const loss = /^The database has lost entries of the log: /;
    if (isRefused) await tryRolledBack(t, dataDir, loss);
    const service = await startTestService(t, isRefused ? ['--accept-rollback'] : [], dataDir);
    const warnings = service.warnings.filter((line) => !loss.test(line));
    assert.equal(service.warnings.length - warnings.length, isRefused ? 1 : 0);
    assert.equal(warnings.length, 1, service.warnings.join('\n'));
    assert.match(
      warnings[0] ?? '',
      /^The audit log's head record .*GET \/api\/v1\/audit\/verify (?:names|reports).*\.$/,
    );
    const first = await verification(service);
    assert.deepEqual([first.valid, first.break_at_entry], [false, breakAt(last)], JSON.stringify(first));
    // A credential that no entry records has no effect.
    const { status } = await service.admin.get('/api/v1/credentials/prod/key');
    assert.equal(status, what.startsWith('all entries') ? 500 : 200);
    assert.deepEqual(await verification(service), first);
    if (!startsAgain) return;
    await service.stop();
    const again = await startTestService(t, [], dataDir);
    assert.deepEqual(await verification(again), first);
    await assertVerifierAgrees(t, again, first);
  });
}

async function assertVerifierAgrees(t: TestContext, service: TestService, told: Record<string, unknown>) {
  const exported = await service.admin.get('/api/v1/audit/export');
  const auditKey = exportAuditKeys(await vaultKeysOf(service.dataDir));
  const head = exported.headers.get('leasehold-audit-head');
  assert.notEqual(head, null);
  const { status, result } = await runVerifier(t, { text: exported.text, head, auditKey });
  assert.equal(status, 1);
  assert.deepEqual(
    [result.break_at_entry, result.break_at_timestamp],
    [told['break_at_entry'], told['break_at_timestamp']],
  );
}

test('an intact log is valid at every start, without a warning', async (t) => {
  const { dataDir, last } = await stoppedVault(t);
  await executeSql(dataDir, 'DROP TABLE old_head');
  for (let start = 1; start <= 2; start++) {
    const service = await startTestService(t, [], dataDir);
    assert.deepEqual(service.warnings, []);
    const { valid, entries } = await verification(service);
    assert.deepEqual([valid, entries], [true, last + 2 * start - 1]);
    await service.stop();
  }
});

for (const [what, retrievals] of [
  ['leases are left', 4],
  ['a credential alone is left', 0],
] as const) {
  test(`a vault whose log and record were deleted does not count as new: ${what}`, async (t) => {
    const { dataDir } = await stoppedVault(t, retrievals);
    await executeSql(
      dataDir,
      'DELETE FROM audit_entries; DELETE FROM audit_head; DELETE FROM vault; DROP TABLE old_head',
    );
    const before = await dumpDatabase(dataDir);
    await assert.rejects(
      startTestService(t, [], dataDir),
      (error) => error instanceof StartupError && !error.message.includes('\n'),
    );
    assert.deepEqual(await dumpDatabase(dataDir), before);
  });
}
