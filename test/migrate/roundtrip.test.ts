// A vault with rows of every kind is the same after a migration to PostgreSQL and back.

import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { newGrantedDatabase } from '../postgres/owner-roles.ts';
import { photograph } from '../server/vaults.ts';
import { assertTellsSame, fillVault, LARGE, tellAll } from './full-vault.ts';
import { contentOf, countRows, moveVault, photographDatabase, urlFile } from './migrations.ts';

const scope = { after };
const vaultDir = join(temporaryDirectory(scope), 'data');
const service = await startTestService(scope, [], vaultDir);
const filled = await fillVault(service);
// An agent whose sessions a panic ended.
await service.admin.post('/api/v1/agents', { name: 'suspect' });
await service.admin.post('/api/v1/panic', { agent: 'suspect' });
const told = await tellAll(service);
await service.stop();
addOldExposure();

/** As leases of more than six days ago leave it. */
function addOldExposure(): void {
  const database = new DatabaseSync(join(vaultDir, 'leasehold.db'));
  database.exec(`INSERT INTO exposures VALUES ('prod/old', '01890000-0000-7000-8000-000000000009', 3, 'retrieve', 'gone', 1, 2, 7);
    INSERT INTO exposure_progress VALUES (1, 1)`);
  database.close();
}

/** The data directory of a node: a copy of the vault's, without the database. */
function homeOf(t: typeof scope): string {
  const home = join(temporaryDirectory(t), 'home');
  cpSync(vaultDir, home, { recursive: true });
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(home, `leasehold.db${suffix}`), { force: true });
  return home;
}

test('a node serves the migrated vault unchanged, adds to it, and the vault is the same after a migration back', async (t) => {
  const url = await newDatabase(t);
  const [home, before] = [homeOf(t), photograph(vaultDir)];
  const { out, told: progress } = await moveVault(vaultDir, url);
  assert.match(out, /^Migrated to PostgreSQL at 127\.0\.0\.1:\d+, database test_\w+:\n/);
  assert.match(out, /The chain is valid: \d+ entries/);
  assert.match(
    out,
    /Rename the old database[\s\S]*mv '.*leasehold\.db'[\s\S]*npm start -- --data-dir DIR --database-file/,
  );
  assert.equal((out + progress).includes(new URL(url).password), false, 'a password was shown');
  assert.deepEqual(photograph(vaultDir), before, 'the source was touched');

  const node = await startTestService(t, ['--database-file', urlFile(t, url)], home);
  assert.deepEqual(node.warnings, []);
  const [old] = (await node.admin.get('/api/v1/exposure/prod/old')).body.data.versions;
  assert.deepEqual([old.version, old.seen_by[0].agent_name, old.seen_by[0].times], [3, 'gone', 7]);
  assertTellsSame(told, await tellAll(node));
  // A use on the node is not a retrieval: the access counts that are migrated back do not include it.
  const use = { path: 'never/asked', method: 'GET', url: 'http://127.0.0.1:1/' };
  assert.equal((await node.admin.post('/api/v1/use', use)).status, 502);
  assert.equal((await node.as(filled.operatorSession).post('/auth/session/renew')).status, 200);
  const agent = node.as(filled.session);
  assert.equal((await agent.get('/api/v1/credentials/prod/grows')).body.data.value, LARGE.slice(1));
  assert.equal((await agent.get('/api/v1/credentials/prod/large?version=1')).body.data.value, LARGE);
  assert.equal((await agent.get('/api/v1/credentials/prod/db/password?version=1')).body.data.value, 'value 1');
  assert.equal((await agent.post(`/api/v1/leases/${filled.leaseId}/renew`)).status, 200);
  assert.equal((await node.anonymous.post('/auth/verify', filled.answered)).body.error.code, 'AUTH_FAILED');
  assert.equal((await filled.repeat(node)).text, filled.repeated);
  assert.equal((await node.admin.get('/api/v1/audit/verify')).body.data.valid, true);
  const toldByNode = await tellAll(node);
  await node.stop();

  const back = await moveVault(url, home);
  assert.match(
    back.out,
    /^Migrated to .*home:\n[\s\S]*Start no node on the old database[\s\S]*npm start -- --data-dir '.*home'\n/,
  );
  const again = await startTestService(t, [], home);
  assertTellsSame(toldByNode, await tellAll(again));
  assert.equal((await again.as(filled.session).get('/api/v1/credentials/prod/once')).body.data.value, 'only');
  assert.equal((await again.anonymous.post('/auth/verify', filled.answered)).body.error.code, 'AUTH_FAILED');
  assert.equal((await filled.repeat(again)).text, filled.repeated);
  assert.equal((await again.admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

test('to PostgreSQL and back without a start, every row is the same, and the source is not written to', async (t) => {
  const url = await newDatabase(t);
  const home = homeOf(t);
  await moveVault(vaultDir, url);
  assert.equal(await countRows(url, 'agents WHERE epoch <> (SELECT epoch FROM leasehold.audit_head)'), 0);
  const before = await photographDatabase(url);
  await moveVault(url, home);
  assert.deepEqual(await photographDatabase(url), before, 'the source was touched');
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
  // Every access is in a count row: the next start has none to add.
  const database = new DatabaseSync(join(home, 'leasehold.db'), { readOnly: true });
  const uncounted =
    'SELECT seq FROM audit_head WHERE counted_through_seq <> seq UNION SELECT count_id FROM access_counts, audit_head WHERE through_seq <> seq';
  assert.deepEqual(database.prepare(uncounted).all(), []);
  database.close();
});

test('the role of a node suffices to migrate to a schema of another owner, and back', async (t) => {
  const { service: url } = await newGrantedDatabase(t);
  const home = homeOf(t);
  await moveVault(vaultDir, url);
  await moveVault(url, home);
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
});

test('the last commits of a killed service, in the write-ahead log, are copied and stay in the source', async (t) => {
  const url = await newDatabase(t);
  const dataDir = join(temporaryDirectory(t), 'data');
  cpSync(vaultDir, dataDir, { recursive: true });
  const killed = await startProcess(t, dataDir);
  const admin = createClient(killed.address, killed.adminToken);
  assert.equal((await admin.post('/api/v1/credentials', { path: 'late/one', value: 'just in time' })).status, 201);
  for (let n = 0; n < 3; n++) assert.equal((await admin.get('/api/v1/credentials/late/one')).status, 200);
  await killed.end('SIGKILL');
  const before = photograph(dataDir);
  assert.notEqual(before['./leasehold.db-wal'], undefined);
  await moveVault(dataDir, url);
  assert.deepEqual(photograph(dataDir), before);
  const node = await startTestService(t, ['--database-file', urlFile(t, url)], homeOf(t));
  const [late] = (await node.admin.get('/api/v1/credentials')).body.data;
  assert.deepEqual([late.path, late.access_count], ['late/one', 3]);
  await node.stop();
});

test('a source without a lock file is migrated, and no lock file is created', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'backup');
  mkdirSync(dataDir);
  for (const name of ['leasehold.db', 'root.key', 'rollback.marker'])
    copyFileSync(join(vaultDir, name), join(dataDir, name));
  const before = photograph(dataDir);
  await moveVault(dataDir, await newDatabase(t));
  assert.deepEqual(photograph(dataDir), before);
});

test('after the old database is renamed as printed, no service starts on an empty one', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  cpSync(vaultDir, dataDir, { recursive: true });
  const { out } = await moveVault(dataDir, await newDatabase(t));
  const [, from = '', to = ''] = /mv '(.*)' '(.*)'/.exec(out) ?? [];
  renameSync(from, to);
  await assert.rejects(
    startTestService(t, [], dataDir),
    /is missing or empty, but its directory has .* --database is missing/,
  );
});
