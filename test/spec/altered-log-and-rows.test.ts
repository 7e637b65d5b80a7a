// The log and the rows are altered together: the digest in the head record shows it. SOURCE: docs/formats.md, "State in
// the log".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { executeSql } from '../kit/direct-db.ts';
import { until } from '../kit/log-receivers.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { attack, prepare, probe } from './state-attacks.ts';

const UNPROVEN = /agents, operators and policies cannot be checked against the log, because .*accept-rollback/;
/** Removes the newest entry about a policy or an agent, as if the change had never happened. */
const FORGET = `DELETE FROM audit_entries WHERE seq = (SELECT max(seq) FROM audit_entries
  WHERE subject LIKE 'policy:%' OR subject LIKE 'agent:%')`;
/** Freezes the epoch of the head record on PostgreSQL: later updates leave it unchanged. */
const FREEZE_EPOCH = `CREATE FUNCTION freeze() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN NEW.epoch := OLD.epoch; RETURN NEW; END';
  CREATE TRIGGER frozen BEFORE UPDATE ON audit_head FOR EACH ROW EXECUTE FUNCTION freeze()`;

async function verifies({ admin }: TestService): Promise<boolean> {
  return (await admin.get('/api/v1/audit/verify')).body.data.valid;
}

test('a policy is inserted again, and the entry of its removal deleted: nothing is in force until it is accepted', async (t) => {
  const service = await startTestService(t);
  const token = await prepare('policy', service);
  const edit = await attack('policy', 'inserted again', service, token);
  await service.stop();
  await edit();
  await executeSql(service.dataDir, FORGET);
  const again = await startTestService(t, [], service.dataDir);
  assert.match(again.warnings.join('\n'), UNPROVEN);
  assert.equal(await probe('policy', again, token), 401);
  assert.deepEqual((await again.admin.get('/api/v1/policies')).body.data, []);
  assert.equal(await verifies(again), false);
  await again.stop();
  const accepted = await startTestService(t, ['--accept-rollback'], service.dataDir);
  assert.equal((await accepted.admin.get('/api/v1/policies')).body.data.length, 1);
  await accepted.stop();
  const last = await startTestService(t, [], service.dataDir);
  assert.doesNotMatch(last.warnings.join('\n'), UNPROVEN);
  assert.equal((await last.admin.get('/api/v1/policies')).body.data.length, 1);
  assert.equal(await verifies(last), false);
});

test('an entry about a policy is removed and its row is not: only that policy is out of force', async (t) => {
  const service = await startTestService(t);
  const token = await prepare('policy', service);
  const other = { name: 'other', principal: 'agent:x', resources: ['x'], actions: ['list'] };
  await service.admin.post('/api/v1/policies', other);
  await service.stop();
  await executeSql(service.dataDir, FORGET);
  const again = await startTestService(t, [], service.dataDir);
  assert.match(again.warnings.join('\n'), /^1 row of agents, operators or policies .*policy:other/m);
  assert.equal(await probe('policy', again, token), 200);
  assert.equal((await again.admin.get('/api/v1/policies/other')).status, 404);
});

test('a head record that is missing or forged proves nothing', async (t) => {
  const service = await startTestService(t);
  const token = await prepare('policy', service);
  await service.stop();
  await executeSql(service.dataDir, 'CREATE TABLE kept_head AS SELECT * FROM audit_head');
  for (const sql of [
    'DELETE FROM audit_head',
    "UPDATE audit_head SET control = 'AAAA'",
    'UPDATE audit_head SET epoch = epoch - 1',
  ]) {
    await executeSql(service.dataDir, `DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM kept_head; ${sql}`);
    const again = await startTestService(t, [], service.dataDir);
    assert.match(again.warnings.join('\n'), UNPROVEN, sql);
    assert.equal(await probe('policy', again, token), 401, sql);
    await again.stop();
  }
});

if (STORE === 'postgres') {
  test('a removal that is kept from another node takes effect there', async (t) => {
    const service = await startTestService(t);
    const token = await prepare('policy', service);
    const other = await startAnotherNode(t, service);
    assert.equal(await probe('policy', other, token), 200);
    await service.admin.delete('/api/v1/policies/bot-policy-0');
    await executeSql(service.dataDir, 'DELETE FROM control_removals');
    assert.equal(await probe('policy', other, token), 403);
  });

  test('a frozen epoch stops a node, and a removal is in effect when it is put right', async (t) => {
    const service = await startTestService(t);
    const token = await prepare('policy', service);
    const other = await startAnotherNode(t, service);
    await executeSql(service.dataDir, FREEZE_EPOCH);
    await service.admin.delete('/api/v1/policies/bot-policy-0');
    assert.equal(await probe('policy', other, token), 503);
    await executeSql(service.dataDir, 'DROP TRIGGER frozen ON audit_head; UPDATE audit_head SET epoch = epoch + 1');
    // A node that could not decide tries again every second.
    await until(async () => (await probe('policy', other, token)) === 403);
  });

  test('a node that reads a policy again, with the entry of its removal gone, decides nothing', async (t) => {
    const service = await startTestService(t);
    const token = await prepare('policy', service);
    const other = await startAnotherNode(t, service);
    const edit = await attack('policy', 'inserted again', service, token);
    await edit();
    const keep = 'CREATE TABLE kept_entries AS SELECT * FROM audit_entries';
    await executeSql(service.dataDir, `${keep}; ${FORGET}; UPDATE policies SET epoch = 1000000`);
    const policy = { principal: 'agent:x', resources: ['x'], actions: ['list'] };
    const { status } = await other.admin.put('/api/v1/policies/other', policy);
    assert.equal(status, 503);
    assert.equal(await probe('policy', other, token), 503);
    const restore = 'INSERT INTO audit_entries SELECT * FROM kept_entries ON CONFLICT DO NOTHING';
    await executeSql(service.dataDir, `${restore}; DROP TABLE kept_entries`);
    // A node that could not decide tries again every second.
    await until(async () => (await probe('policy', other, token)) === 403);
  });
}
