// A migration is killed repeatedly at random moments. Run to its end, it has copied every row once.

import assert from 'node:assert/strict';
import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { deriveKeys, parseRootKey } from '../../src/crypto/keys.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { newDatabase } from '../kit/database.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { startTestService } from '../kit/service.ts';
import { photograph } from '../server/vaults.ts';
import { lengthenLog } from '../vault/verification-log.ts';
import { fillVault } from './full-vault.ts';
import {
  assertRejected,
  beginMove,
  contentOf,
  countRows,
  moveVault,
  photographDatabase,
  urlFile,
} from './migrations.ts';

/** Fractions of the time between the first and the last row. */
const LONGEST_MS = 400;
/** Enough entries for a verification in threads. */
const ENTRIES = scaled(6000, 21_000);

const scope = { after };
const vaultDir = join(temporaryDirectory(scope), 'data');
/** A separate directory: other tests migrate concurrently. */
const TMPDIR = temporaryDirectory(scope);
const service = await startTestService(scope, [], vaultDir);
await fillVault(service);
await service.stop();
const rootKey = parseRootKey(readFileSync(join(vaultDir, 'root.key'), 'latin1')) ?? assert.fail();
const store = new SqliteStore(join(vaultDir, 'leasehold.db'));
await lengthenLog(store, deriveKeys(rootKey), ENTRIES);
await store.close();
const database = new DatabaseSync(join(vaultDir, 'leasehold.db'));
database.exec(`INSERT OR IGNORE INTO leases SELECT seq, id, 'admin', 'none', 'admin', 'a/b', 1, 'p', 1, 2000000000000, NULL
    FROM audit_entries WHERE seq % 2 = 0;
  INSERT OR IGNORE INTO lease_spans SELECT DISTINCT agent_name, seq / 4096 FROM leases;
  UPDATE audit_head SET counted_through_seq = seq`);
database.close();

/** Starts a migration and kills it some time after its first write. Resolves to whether it was still running. */
async function killOnce(flags: readonly string[], afterMs: number): Promise<boolean> {
  const move = beginMove(flags, { TMPDIR });
  await move.tells('Moving to');
  await sleep(afterMs);
  move.child.kill('SIGKILL');
  const { code } = await move.ended;
  return code === null;
}

/**
 * Kills migrations until the given number was killed. Each run continues the one before. After a run that completes the next
 * one gets a new target. `check` is called after each.
 */
async function killOften(kills: number, begin: () => Promise<string[]>, check: () => Promise<void>): Promise<string[]> {
  let flags = await begin();
  for (let killed = 0; killed < kills; ) {
    if (await killOnce(flags, Math.random() * LONGEST_MS)) killed += 1;
    else flags = await begin();
    await check();
  }
  return flags;
}

const temporaries = () => readdirSync(TMPDIR);
const copyHome = (t: Scope): string => {
  const home = join(temporaryDirectory(t), 'home');
  cpSync(vaultDir, home, { recursive: true, filter: (from) => !/leasehold\.db/.test(from) });
  return home;
};

test('killed repeatedly on the way to PostgreSQL, it copies every row once', async (t) => {
  const before = photograph(vaultDir);
  let url = '';
  const begin = async (): Promise<string[]> => {
    url = await newDatabase(t);
    return ['--from', vaultDir, '--database-file', urlFile(t, url)];
  };
  const flags = await killOften(scaled(2, 10), begin, async () => assert.deepEqual(photograph(vaultDir), before));
  const { code, out } = await beginMove(flags, { TMPDIR }).ended;
  assert.equal(code, 0);
  assert.match(out, /^(?:Moved to|The vault was already moved)/);
  const home = copyHome(t);
  await moveVault(url, home);
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
  assert.deepEqual(temporaries(), [], 'copies of the source were left');
});

test('killed repeatedly on the way back, it copies every row once', async (t) => {
  const url = await newDatabase(t);
  await moveVault(vaultDir, url);
  const before = await photographDatabase(url);
  let home = '';
  const begin = async (): Promise<string[]> => {
    home = copyHome(t);
    return ['--to', home, '--database-file', urlFile(t, url)];
  };
  const flags = await killOften(scaled(1, 5), begin, async () =>
    assert.deepEqual(await photographDatabase(url), before),
  );
  assert.equal((await beginMove(flags).ended).code, 0);
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
});

test('no service starts on an incomplete copy, and its error names the remedy', async (t) => {
  const [url, home] = [await newDatabase(t), copyHome(t)];
  const unfinished = /^A migration to this database is not complete: run the same npm run migrate again\. [^\n]*$/;
  while ((await countRows(url, 'audit_entries').catch(() => 0)) === 0)
    await killOnce(['--from', vaultDir, '--to', url], 150);
  if ((await countRows(url, 'vault')) === 0) {
    await assert.rejects(startTestService(t, ['--database', url], home), { message: unfinished });
  }
  await moveVault(vaultDir, url);
  let half = copyHome(t);
  while (countIn(half, 'audit_entries') === 0 || countIn(half, 'vault') > 0) {
    if (countIn(half, 'vault') > 0) half = copyHome(t); // it was faster than the kill
    await killOnce(['--from', url, '--to', half], Math.random() * 150);
  }
  await assert.rejects(startTestService(t, [], half), { message: unfinished });
  await moveVault(url, half);
  const { stop } = await startTestService(t, [], half);
  await stop();
});

function countIn(dataDir: string, table: string): number {
  try {
    return contentOf(dataDir)[table]?.length ?? 0;
  } catch {
    return 0;
  }
}

test('an interrupted migration stops, prints how to continue, and leaves no snapshot', async (t) => {
  const url = await newDatabase(t);
  const move = beginMove(['--from', vaultDir, '--to', url], { TMPDIR });
  await move.tells('Moving to');
  move.child.kill('SIGTERM');
  const { code, told } = await move.ended;
  assert.match(told, /\nleasehold: Interrupted\. Run the same command again to continue\.\n$/);
  assert.equal(code, 1);
  assert.deepEqual(temporaries(), []);
  await moveVault(vaultDir, url);
  const { out } = await moveVault(vaultDir, url);
  assert.match(out, /^The vault was already moved to PostgreSQL at /);
});

test('a second run copies changes of the source and deletes its deleted rows', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  cpSync(vaultDir, dataDir, { recursive: true });
  const url = await moveUpToLeases(t, dataDir);
  const between = await startTestService(t, [], dataDir);
  for (const path of ['prod/db/password', 'stage/key']) {
    assert.equal((await between.admin.delete(`/api/v1/credentials/${path}`)).status, 204);
  }
  await between.admin.post('/api/v1/credentials', { path: 'stage/key', value: 'a third one', type: 'other' });
  await between.admin.post('/api/v1/credentials', { path: 'prod/large', value: 'newest' });
  await between.admin.put('/api/v1/policies/worker-0', { principal: 'agent:x', resources: ['y'], actions: ['list'] });
  assert.equal((await between.admin.delete('/api/v1/agents/other')).status, 204);
  for (let n = 0; n < 3; n++) await between.admin.get('/api/v1/credentials/prod/large');
  await between.stop();
  await moveVault(dataDir, url);
  const home = copyHome(t);
  await moveVault(url, home);
  assert.deepEqual(contentOf(home), contentOf(dataDir));
});

/** Kills a migration at the last large table; resolves to the URL of its target. */
async function moveUpToLeases(scope: Scope, dataDir: string): Promise<string> {
  for (;;) {
    const url = await newDatabase(scope);
    const { child, ended, tells } = beginMove(['--from', dataDir, '--to', url]);
    await tells('Moving to');
    while ((await countRows(url, 'leases')) === 0) await sleep(2);
    child.kill('SIGKILL');
    await ended;
    // It may have completed.
    if ((await countRows(url, 'vault')) === 0) return url;
  }
}

test('of two concurrent migrations to one database one is rejected', async (t) => {
  const url = await newDatabase(t);
  const first = beginMove(['--from', vaultDir, '--to', url]);
  await first.tells('Moving to');
  first.child.kill('SIGSTOP');
  await assertRejected(['--from', vaultDir, '--to', url], /another move into this database is under way/);
  first.child.kill('SIGCONT');
  assert.equal((await first.ended).code, 0);
});
