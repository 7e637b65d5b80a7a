// A move is killed at random moments, again and again; run to its end, it has brought everything once.

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
  assertRefused,
  beginMove,
  contentOf,
  countRows,
  moveVault,
  photographDatabase,
  urlFile,
} from './migrations.ts';

/** Of the time between the first row and the last. */
const LONGEST_MS = 400;
/** In the end so many that threads verify it. */
const ENTRIES = scaled(6000, 21_000);

const scope = { after };
const house = join(temporaryDirectory(scope), 'data');
/** Of its own: other tests move at the same time. */
const TMPDIR = temporaryDirectory(scope);
const service = await startTestService(scope, [], house);
await fillVault(service);
await service.stop();
const rootKey = parseRootKey(readFileSync(join(house, 'root.key'), 'latin1')) ?? assert.fail();
const store = new SqliteStore(join(house, 'leasehold.db'));
await lengthenLog(store, deriveKeys(rootKey), ENTRIES);
await store.close();
const database = new DatabaseSync(join(house, 'leasehold.db'));
database.exec(`INSERT OR IGNORE INTO leases SELECT seq, id, 'admin', 'none', 'admin', 'a/b', 1, 'p', 1, 2000000000000, NULL
    FROM audit_entries WHERE seq % 2 = 0;
  INSERT OR IGNORE INTO lease_spans SELECT DISTINCT agent_name, seq / 4096 FROM leases;
  UPDATE audit_head SET counted_through_seq = seq`);
database.close();

/** Begins it and kills it, some time after it began to write; whether it was still at it. */
async function killOnce(flags: readonly string[], afterMs: number): Promise<boolean> {
  const move = beginMove(flags, { TMPDIR });
  await move.tells('Moving into');
  await sleep(afterMs);
  move.child.kill('SIGKILL');
  const { code } = await move.ended;
  return code === null;
}

/**
 * Kills moves until so many were killed at it. Each try goes on where the one before was killed, so that one of them comes to its
 * end: then a new target is begun. `look` is called after each.
 */
async function killOften(kills: number, begin: () => Promise<string[]>, look: () => Promise<void>): Promise<string[]> {
  let flags = await begin();
  for (let killed = 0; killed < kills; ) {
    if (await killOnce(flags, Math.random() * LONGEST_MS)) killed += 1;
    else flags = await begin();
    await look();
  }
  return flags;
}

const temporaries = () => readdirSync(TMPDIR);
const copyHome = (t: Scope): string => {
  const home = join(temporaryDirectory(t), 'home');
  cpSync(house, home, { recursive: true, filter: (from) => !/leasehold\.db/.test(from) });
  return home;
};

test('killed again and again on its way into PostgreSQL, it brings everything, once', async (t) => {
  const before = photograph(house);
  let url = '';
  const begin = async (): Promise<string[]> => {
    url = await newDatabase(t);
    return ['--from', house, '--database-file', urlFile(t, url)];
  };
  const flags = await killOften(scaled(2, 10), begin, async () => assert.deepEqual(photograph(house), before));
  const { code, out } = await beginMove(flags, { TMPDIR }).ended;
  assert.equal(code, 0);
  assert.match(out, /^(?:Moved into|It was moved already)/);
  const home = copyHome(t);
  await moveVault(url, home);
  assert.deepEqual(contentOf(home), contentOf(house));
  assert.deepEqual(temporaries(), [], 'copies of the source were left');
});

test('killed again and again on its way back, it brings everything, once', async (t) => {
  const url = await newDatabase(t);
  await moveVault(house, url);
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
  assert.deepEqual(contentOf(home), contentOf(house));
});

test('no service starts on what was half moved, and it is told what to do', async (t) => {
  const [url, home] = [await newDatabase(t), copyHome(t)];
  const unfinished = /^A move into this database was not finished: run npm run migrate again, as before\. [^\n]*$/;
  while ((await countRows(url, 'audit_entries').catch(() => 0)) === 0)
    await killOnce(['--from', house, '--to', url], 150);
  if ((await countRows(url, 'vault')) === 0) {
    await assert.rejects(startTestService(t, ['--database', url], home), { message: unfinished });
  }
  await moveVault(house, url);
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

test('a move that is told to stop does so, says how to go on, and leaves no copy', async (t) => {
  const url = await newDatabase(t);
  const move = beginMove(['--from', house, '--to', url], { TMPDIR });
  await move.tells('Moving into');
  move.child.kill('SIGTERM');
  const { code, told } = await move.ended;
  assert.match(told, /\nleasehold: Interrupted\. Run the same again: it goes on\.\n$/);
  assert.equal(code, 1);
  assert.deepEqual(temporaries(), []);
  await moveVault(house, url);
  const { out } = await moveVault(house, url);
  assert.match(out, /^It was moved already: PostgreSQL at /);
});

test('what the source changed between two tries is brought too, and what it removed is gone', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  cpSync(house, dataDir, { recursive: true });
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

/** Kills a move when it has come to the last large table; resolves to the URL of its target. */
async function moveUpToLeases(scope: Scope, dataDir: string): Promise<string> {
  for (;;) {
    const url = await newDatabase(scope);
    const { child, ended, tells } = beginMove(['--from', dataDir, '--to', url]);
    await tells('Moving into');
    while ((await countRows(url, 'leases')) === 0) await sleep(2);
    child.kill('SIGKILL');
    await ended;
    // It may have been faster.
    if ((await countRows(url, 'vault')) === 0) return url;
  }
}

test('two moves into one database at once: one of them is refused', async (t) => {
  const url = await newDatabase(t);
  const first = beginMove(['--from', house, '--to', url]);
  await first.tells('Moving into');
  first.child.kill('SIGSTOP');
  await assertRefused(['--from', house, '--to', url], /another move into this database is under way/);
  first.child.kill('SIGCONT');
  assert.equal((await first.ended).code, 0);
});
