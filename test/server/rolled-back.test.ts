// A vault whose database is older than what its directory has seen: the log can be examined, and nothing else is
// served or written until the operator accepts the loss.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newPassphraseParameters, slotPrivateKey, slotPublicKey } from '../../src/crypto/key-slots.ts';
import { newHome } from '../kit/command.ts';
import { dumpDatabase, executeSql, selectRows } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertRejected } from '../kit/responses.ts';
import { assertRolledBack, isRolledBack } from '../kit/rolled-back.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { copyDatabaseOf, STORE } from '../kit/stores.ts';
import { copyVault, sessionOfGranted } from './vaults.ts';

const ROLLBACK = '/api/v1/audit/rollback';
const LOSS = /^The database has lost entries of the log: this node has seen entry \d+, and the log ends at \d+\./;

/** The directory of a vault whose database was replaced by a previous copy. */
async function rolledBackVault(
  t: TestContext,
  open?: { prepare(service: TestService): Promise<void>; unlock(service: TestService): Promise<void> },
): Promise<string> {
  const dataDir = await copyVault(t);
  if (open !== undefined) {
    const first = await startTestService(t, [], dataDir);
    await open.prepare(first);
    await first.stop();
  }
  const later = join(temporaryDirectory(t), 'later');
  cpSync(dataDir, later, { recursive: true });
  await copyDatabaseOf(dataDir, later);
  const service = await startTestService(t, [], later);
  await open?.unlock(service);
  assert.equal((await service.admin.delete('/api/v1/agents/granted')).status, 204);
  await service.stop();
  for (const file of ['rollback.marker', 'checkpoints.log']) copyFileSync(join(later, file), join(dataDir, file));
  return dataDir;
}

const contentOf = (dataDir: string) =>
  STORE === 'sqlite'
    ? dumpDatabase(dataDir).then(({ audit_entries, audit_head }) => ({ audit_entries, audit_head }))
    : dumpDatabase(dataDir);

async function newestEvents({ admin }: TestService, count: number) {
  const { data } = (await admin.get(`/api/v1/audit?limit=${count}`)).body;
  return data.map(({ event_type, agent_name, reason }: Record<string, string>) => [event_type, agent_name, reason]);
}

test('nothing but the log is served, to the administrator alone, and nothing is written', async (t) => {
  const dataDir = await rolledBackVault(t);
  const before = await contentOf(dataDir);
  const service = await startTestService(t, [], dataDir);
  await assertRolledBack(service, LOSS);
  const { admin, as, anonymous } = service;
  for (const path of ['/api/v1/audit/checkpoint', '/api/v1/agents', '/openapi.json', '/nowhere']) {
    const message = assertRejected(await admin.get(path), 'UNAVAILABLE');
    assert.match(message, /The audit log has lost entries.*leasehold audit accept-rollback/, path);
  }
  for (const path of ['/api/v1/credentials', '/api/v1/use', '/api/v1/lock', '/api/v1/panic', '/api/v1/backup']) {
    assertRejected(await admin.post(path, {}), 'UNAVAILABLE');
  }
  // The session was ended by an entry that is lost.
  assertRejected(await as(sessionOfGranted).get('/api/v1/credentials/a/b'), 'UNAVAILABLE');
  assertRejected(await as(sessionOfGranted).get('/api/v1/audit/verify'), 'ACCESS_DENIED');
  assertRejected(await as(sessionOfGranted).post(ROLLBACK, {}), 'ACCESS_DENIED');
  assertRejected(await anonymous.post(ROLLBACK, {}), 'UNAUTHENTICATED');
  assert.match((await admin.get(ROLLBACK)).body.data.loss, LOSS);
  await service.stop();
  assert.deepEqual(await contentOf(dataDir), before);
});

test('the command names the loss, accepts it, and the log has both', async (t) => {
  const dataDir = await rolledBackVault(t);
  const service = await startTestService(t, [], dataDir);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const accept = (...words: string[]) => home.leasehold(['audit', 'accept-rollback', ...words]);
  const tried = await accept('--dry-run');
  assert.match(tried.stderr, /this node has seen entry \d+.*The changes that they record are lost too/);
  assert.equal(await isRolledBack(service), true);
  assert.equal((await accept()).code, 1, 'without a terminal it needs --yes');
  const { code, stderr } = await accept('--yes');
  assert.deepEqual(
    [code, stderr.trim()],
    [0, 'Accepted the loss; the audit log records it. Next: leasehold audit verify.'],
  );
  assert.equal((await service.admin.get('/api/v1/credentials/a/b')).body.data.value, 'kept');
  assert.equal((await service.as(sessionOfGranted).get('/api/v1/credentials')).status, 200);
  const [, , [accepted, by, why], [start, , reason]] = await newestEvents(service, 4);
  assert.deepEqual([accepted, by, start], ['audit.accept_rollback', 'admin', 'service.start']);
  assert.match(why, LOSS);
  assert.match(reason, /has lost entries of the log.*The operator accepts the loss/);
  const { data } = (await service.admin.get('/api/v1/audit/checkpoint')).body;
  assert.match(data.origin, /\/2$/, 'no two checkpoints of one size have one key');
  assert.match((await accept()).stderr, /No loss of the audit log is known/);
  assert.equal((await service.admin.get('/api/v1/audit/verify')).body.data.valid, true);
  await service.stop();
  const again = await startTestService(t, [], dataDir);
  assert.deepEqual([again.warnings, await isRolledBack(again)], [[], false]);
});

test('commands list, verify and export the log; others report the loss, and do not wait for the operator', async (t) => {
  const service = await startTestService(t, [], await rolledBackVault(t));
  // Clients wait for a minute at most.
  assert.ok(Number((await service.admin.get('/api/v1/agents')).headers.get('retry-after')) > 60);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  for (const command of ['list', 'verify', 'export']) {
    const { code, stderr } = await home.leasehold(['audit', command]);
    assert.equal(code, 0, stderr);
  }
  const { code, stderr } = await home.leasehold(['list']);
  assert.deepEqual([code, /The audit log has lost entries/.test(stderr)], [2, true]);
});

test('of a vault that a person has unlocked the loss is accepted without another secret', async (t) => {
  const [parameters, secret] = [newPassphraseParameters(), randomBytes(32)];
  const unlock = async ({ anonymous }: TestService) => {
    const { status } = await anonymous.post('/api/v1/unlock', { secret: secret.toString('base64') });
    assert.equal(status, 200);
  };
  const prepare = async ({ admin }: TestService) => {
    const slot = { name: 'words', kind: 'passphrase', public_key: slotPublicKey(slotPrivateKey(secret)), parameters };
    assert.equal((await admin.post('/api/v1/key/slots', slot)).status, 201);
    assert.equal((await admin.delete('/api/v1/key/slots/file')).status, 204);
  };
  const dataDir = await rolledBackVault(t, { prepare, unlock });
  const service = await startTestService(t, [], dataDir);
  const health = async () => (await service.anonymous.get('/api/v1/health')).body.data.status;
  assert.equal(await health(), 'locked');
  await unlock(service);
  assert.equal(await health(), 'rolled_back');
  assert.deepEqual((await service.admin.post(ROLLBACK, {})).body.data, { status: 'ok' });
  assert.equal(await health(), 'ok');
  const events = (await newestEvents(service, 2)).map(([event]: string[]) => event);
  assert.deepEqual(events, ['audit.accept_rollback', 'service.start']);
});

test('agents that cannot be checked against the log are in force again once that is accepted', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(dataDir, 'DELETE FROM audit_head');
  const service = await startTestService(t, [], dataDir);
  assert.equal((await service.as(sessionOfGranted).get('/api/v1/credentials')).status, 401);
  assert.match((await service.admin.get(ROLLBACK)).body.data.loss, /agents, operators and policies cannot be checked/);
  assert.deepEqual((await service.admin.post(ROLLBACK, {})).body.data, { status: 'ok' });
  assert.deepEqual((await service.admin.get(ROLLBACK)).body.data, { loss: null });
  assert.equal((await service.admin.get('/api/v1/agents')).body.data.length, 2);
});

test('the flag is for one opening: a loss after it needs another acceptance', async (t) => {
  const dataDir = await rolledBackVault(t);
  const newer = readFileSync(join(dataDir, 'rollback.marker'));
  const secret = readFileSync(join(dataDir, 'root.key'), 'utf8').trim();
  const service = await startTestService(t, ['--accept-rollback'], dataDir);
  assert.equal((await service.admin.post('/api/v1/lock', {})).status, 200);
  writeFileSync(join(dataDir, 'rollback.marker'), newer);
  assert.equal((await service.anonymous.post('/api/v1/unlock', { secret })).body.data.status, 'rolled_back');
  assert.equal(await isRolledBack(service), true);
});

test('rows with the MACs of lost entries, added after an earlier head record, do not hide the loss', async (t) => {
  const dataDir = await copyVault(t);
  const [{ head_seq = 0 } = {}] = await selectRows(dataDir, 'SELECT seq AS head_seq FROM audit_head');
  await executeSql(dataDir, 'CREATE TABLE old_head AS SELECT * FROM audit_head');
  const service = await startTestService(t, [], dataDir);
  assert.equal((await service.admin.delete('/api/v1/credentials/a/b')).status, 204);
  await service.stop();
  await executeSql(
    dataDir,
    `UPDATE audit_entries SET resource = 'x', subject = NULL, state = NULL WHERE seq > ${Number(head_seq)};
     DELETE FROM audit_head; INSERT INTO audit_head SELECT * FROM old_head; DROP TABLE old_head`,
  );
  const again = await startTestService(t, [], dataDir);
  await assertRolledBack(again, LOSS);
});

test('an earlier keyset that is put back opens read-only, and is named', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(
    dataDir,
    'CREATE TABLE old_keyset AS SELECT * FROM keyset; CREATE TABLE old_slots AS SELECT * FROM key_slots',
  );
  const service = await startTestService(t, [], dataDir);
  assert.equal((await service.admin.post('/api/v1/key/rotate', { key: 'root' })).status, 200);
  assert.equal((await service.admin.post('/api/v1/key/rotate', { key: 'data' })).status, 200);
  assert.deepEqual((await service.admin.get('/api/v1/audit/verify?state=true')).body.data.state.problems, []);
  await service.stop();
  await executeSql(
    dataDir,
    `DELETE FROM keyset; INSERT INTO keyset SELECT * FROM old_keyset; DROP TABLE old_keyset;
     DELETE FROM key_slots; INSERT INTO key_slots SELECT * FROM old_slots; DROP TABLE old_slots`,
  );
  const again = await startTestService(t, [], dataDir);
  await assertRolledBack(again, /^The keyset in the database is not the one that the log records/);
  const { problems } = (await again.admin.get('/api/v1/audit/verify?state=true')).body.data.state;
  assert.deepEqual(problems, [{ subject: 'keyset', problem: 'not as recorded' }]);
});
