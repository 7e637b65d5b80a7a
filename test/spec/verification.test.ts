// Verification of the audit log of a database that is tampered with while the server runs.
// SOURCE: docs/api.md, "The audit log"; docs/decisions.md, "The process" and "The audit log".

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { type AuditEntry, USE_FIELDS } from '../../src/vault/audit/audit-entry.ts';
import { Verifier } from '../../src/vault/audit/verification/verifier.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import type { Scope } from '../kit/directory.ts';
import { assertRejected, dataOf } from '../kit/responses.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const VERIFY = '/api/v1/audit/verify';
/** Whether several nodes may share the store. */
const isShared = STORE === 'postgres';
const INTACT = 'valid entries first_entry last_entry';
/** The limit is reached by a hang alone. */
const HANG_MS = 60_000;
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
const NULLABLE = ['policy_name', 'lease_id', 'code', 'reason', 'request_id', 'remote_addr'] as const;
const isNumeric = (column: string) => /^(?:status|bytes_\w+|redactions)$/.test(column);

/** A change of each column of entry 4, so that each is read and covered. */
const CHANGES: readonly string[] = [
  ...[...COLUMNS, ...NULLABLE].map((column) => `${column} = coalesce(${column}, '') || 'x'`),
  ...NULLABLE.map((column) => `${column} = CASE WHEN ${column} IS NULL THEN '' ELSE NULL END`),
  ...USE_FIELDS.map((column) => `${column} = ${isNumeric(column) ? 0 : "''"}`),
];

interface Removal {
  readonly sql: string;
  /** The first broken entry and its stored time. */
  readonly seq: number;
  readonly timestamp: string | null;
  /** The last entry that a node has seen is deleted: on a shared log the node then rejects requests. */
  readonly takesEnd?: true;
}

/** test/crypto/chain.test.ts has every kind of break; these are what a store reads. */
const REMOVALS: Readonly<Record<string, Removal>> = {
  'a timestamp moved on': {
    sql: `UPDATE audit_entries SET timestamp = '2999-01-01T00:00:00.000Z' WHERE seq = ${last}`,
    seq: last,
    timestamp: '2999-01-01T00:00:00.000Z',
  },
  'the first entry removed': { sql: 'DELETE FROM audit_entries WHERE seq = 1', seq: 1, timestamp: timeOf(2) },
  'an entry removed': { sql: 'DELETE FROM audit_entries WHERE seq = 3', seq: 3, timestamp: timeOf(4) },
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

test('a change of any column is found at its entry', async () => {
  for (const change of CHANGES) {
    await tamper(`UPDATE audit_entries SET ${change} WHERE seq = 4`, async () => {
      const { message, ...rest } = await verify(BROKEN);
      assert.deepEqual(rest, { valid: false, break_at_entry: 4, break_at_timestamp: timeOf(4) }, change);
      assert.match(message, /broken at entry 4\b/);
    });
  }
  assert.equal((await verify(INTACT)).entries, last);
});

for (const [name, { sql, seq, timestamp, takesEnd }] of Object.entries(REMOVALS)) {
  test(`verify names the first broken entry: ${name}`, async (t) => {
    await tamper(sql, async () => {
      if (takesEnd && isShared) return assertToldByAnotherNode(t, seq);
      const { message: _, ...rest } = await verify(BROKEN);
      assert.deepEqual(rest, { valid: false, break_at_entry: seq, break_at_timestamp: timestamp });
    });
  });
}

test('a verification ends when its client disconnects, and a stop completes another one', {
  timeout: HANG_MS,
}, async (t) => {
  const own = await startTestService(t);
  const verifyNow = Verifier.prototype.verify;
  let begun = Promise.withResolvers<AbortSignal>();
  const gate = Promise.withResolvers<void>();
  t.mock.method(Verifier.prototype, 'verify', async function verify(this: Verifier, signal: AbortSignal) {
    begun.resolve(signal);
    await Promise.race([gate.promise, once(signal, 'abort')]);
    return verifyNow.call(this, signal);
  });

  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${own.adminToken}` };
  const asked = fetch(own.address + VERIFY, { headers, signal: leaving.signal });
  const signal = await begun.promise;
  leaving.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  if (!signal.aborted) await once(signal, 'abort');

  begun = Promise.withResolvers();
  const verifying = own.admin.get(VERIFY);
  await begun.promise;
  const stopped = own.stop();
  const isOpen = () =>
    fetch(`${own.address}/livez`).then(
      () => true,
      () => false,
    );
  while (await isOpen());
  gate.resolve();
  assert.equal(dataOf(await verifying, 200, INTACT).valid, true);
  await stopped;
});
