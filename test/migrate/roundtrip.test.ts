// A vault with everything in it goes from the embedded database into PostgreSQL, and back, and is the same.

import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryFolder } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { newGrantedDatabase } from '../postgres/owner-roles.ts';
import { photograph } from '../server/vaults.ts';
import { assertTellsSame, fillVault, LARGE, tellAll } from './full-vault.ts';
import { contentOf, countRows, moveVault, photographDatabase, urlFile } from './migrations.ts';

const scope = { after };
const house = join(temporaryFolder(scope), 'data');
const service = await startTestService(scope, [], house);
const filled = await fillVault(service);
const told = await tellAll(service);
await service.stop();

/** A copy of the house, without its database: where a node lives. */
function homeOf(t: typeof scope): string {
  const home = join(temporaryFolder(t), 'home');
  cpSync(house, home, { recursive: true });
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(home, `leasehold.db${suffix}`), { force: true });
  return home;
}

test('what was moved is told the same by a node, goes on, and comes back the same', async (t) => {
  const url = await newDatabase(t);
  const [home, before] = [homeOf(t), photograph(house)];
  const { out, told: progress } = await moveVault(house, url);
  assert.match(out, /^Moved into PostgreSQL at 127\.0\.0\.1:\d+, database test_\w+:\n/);
  assert.match(out, /The chain is valid: \d+ entries/);
  assert.match(
    out,
    /Put the old database away[\s\S]*mv '.*leasehold\.db'[\s\S]*npm start -- --data-dir DIR --database-file/,
  );
  assert.equal((out + progress).includes(new URL(url).password), false, 'a password was shown');
  assert.deepEqual(photograph(house), before, 'the source was touched');

  const node = await startTestService(t, ['--database-file', urlFile(t, url)], home);
  assert.deepEqual(node.warnings, []);
  assertTellsSame(told, await tellAll(node));
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
    /^Moved into .*home:\n[\s\S]*Start no node on the old database[\s\S]*npm start -- --data-dir '.*home'\n/,
  );
  const again = await startTestService(t, [], home);
  assertTellsSame(toldByNode, await tellAll(again));
  assert.equal((await again.as(filled.session).get('/api/v1/credentials/prod/once')).body.data.value, 'only');
  assert.equal((await again.anonymous.post('/auth/verify', filled.answered)).body.error.code, 'AUTH_FAILED');
  assert.equal((await filled.repeat(again)).text, filled.repeated);
  assert.equal((await again.admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

test('there and back without a stay, every row is the one that it was, and the PostgreSQL is not written to', async (t) => {
  const url = await newDatabase(t);
  const home = homeOf(t);
  await moveVault(house, url);
  assert.equal(await countRows(url, 'agents WHERE epoch <> (SELECT epoch FROM leasehold.audit_head)'), 0);
  const before = await photographDatabase(url);
  await moveVault(url, home);
  assert.deepEqual(await photographDatabase(url), before, 'the source was touched');
  assert.deepEqual(contentOf(home), contentOf(house));
  // Every access is in a row: the next start has nothing to count.
  const database = new DatabaseSync(join(home, 'leasehold.db'), { readOnly: true });
  const uncounted =
    'SELECT seq FROM audit_head WHERE counted_through_seq <> seq UNION SELECT count_id FROM access_counts, audit_head WHERE through_seq <> seq';
  assert.deepEqual(database.prepare(uncounted).all(), []);
  database.close();
});

test('the role of a node, which owns nothing, is enough: into a schema that was made by its owner, and back', async (t) => {
  const { service: url } = await newGrantedDatabase(t);
  const home = homeOf(t);
  await moveVault(house, url);
  await moveVault(url, home);
  assert.deepEqual(contentOf(home), contentOf(house));
});

test('between two folders and between two PostgreSQLs it is the same', async (t) => {
  const [first, second] = [await newDatabase(t), await newDatabase(t)];
  const [other, last] = [join(temporaryFolder(t), 'other'), homeOf(t)];
  const key = ['--root-key-file', join(house, 'root.key')];
  await moveVault(house, other);
  await moveVault(other, first, key);
  await moveVault(first, second, key);
  await moveVault(second, last);
  assert.deepEqual(contentOf(last), contentOf(house));
});

test('a service that was killed leaves its last commits beside the database: they are moved, and stay there', async (t) => {
  const url = await newDatabase(t);
  const dataDir = join(temporaryFolder(t), 'data');
  cpSync(house, dataDir, { recursive: true });
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

test('a vault that was never started again has no lock: it is moved, and none is made', async (t) => {
  const dataDir = join(temporaryFolder(t), 'backup');
  mkdirSync(dataDir);
  for (const name of ['leasehold.db', 'root.key', 'log.anchor']) copyFileSync(join(house, name), join(dataDir, name));
  const before = photograph(dataDir);
  await moveVault(dataDir, await newDatabase(t));
  assert.deepEqual(photograph(dataDir), before);
});

test('the old database, put away as it is told, keeps the service from starting on nothing', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  cpSync(house, dataDir, { recursive: true });
  const { out } = await moveVault(dataDir, await newDatabase(t));
  const [, from = '', to = ''] = /mv '(.*)' '(.*)'/.exec(out) ?? [];
  renameSync(from, to);
  await assert.rejects(
    startTestService(t, [], dataDir),
    /is missing or empty, but its directory has .* --database is missing/,
  );
});
