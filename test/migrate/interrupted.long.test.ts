// A migration is killed at random moments. It leaves nothing, and the same command then copies every row once.

import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import { newDatabase } from '../kit/database.ts';
import { LEASE_COLUMNS } from '../kit/direct-db.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import { startTestService } from '../kit/service.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
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

/** Longer than the copy takes, without other load. */
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
const store = new SqliteStore(join(vaultDir, 'leasehold.db'));
await lengthenLog(store, await vaultKeysOf(vaultDir), ENTRIES);
await store.close();
const database = new DatabaseSync(join(vaultDir, 'leasehold.db'));
database.exec(`INSERT OR IGNORE INTO leases (${LEASE_COLUMNS})
    SELECT seq, id, 'admin', '01890000-0000-7000-8000-000000000009', 'admin', 'a/b', 1, 'p', 1, 2000000000000, NULL
    FROM audit_entries WHERE seq % 2 = 0;
  INSERT OR IGNORE INTO lease_spans SELECT DISTINCT agent_name, seq / 4096 FROM leases;
  UPDATE audit_head SET counted_through_seq = seq`);
database.close();

/** Starts a migration and kills it some time after its first write. Resolves to whether it was still running. */
async function killOnce(flags: readonly string[], afterMs: number): Promise<boolean> {
  const move = beginMove(flags, { TMPDIR });
  await move.tells('Migrating to');
  await sleep(afterMs);
  move.child.kill('SIGKILL');
  const { code } = await move.ended;
  return code === null;
}

/** Kills migrations at random moments; each begins again with an empty target. */
async function killOften(kills: number, flags: readonly string[], check: () => Promise<void>): Promise<void> {
  for (let killed = 0; killed < kills; killed++) {
    if (!(await killOnce(flags, Math.random() * LONGEST_MS))) return;
    await check();
  }
}

const temporaries = () => readdirSync(TMPDIR);
const copyHome = (t: Scope): string => {
  const home = join(temporaryDirectory(t), 'home');
  cpSync(vaultDir, home, { recursive: true, filter: (from) => !/leasehold\.db/.test(from) });
  return home;
};

test('killed on the way to PostgreSQL, it leaves nothing, and then copies every row', async (t) => {
  const [before, url] = [photograph(vaultDir), await newDatabase(t)];
  const flags = ['--from', vaultDir, '--database-file', urlFile(t, url)];
  await killOften(scaled(2, 10), flags, async () => {
    assert.deepEqual(photograph(vaultDir), before);
    // The migration may end before the kill.
    if ((await countRows(url, 'vault')) === 0) assert.equal(await countRows(url, 'audit_entries'), 0);
  });
  for (const left of temporaries()) rmSync(join(TMPDIR, left), { recursive: true });
  await beginMove(flags, { TMPDIR }).ended;
  const home = copyHome(t);
  await moveVault(url, home);
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
  assert.deepEqual(temporaries(), [], 'copies of the source were left');
});

test('killed on the way back, it leaves no database, and then copies every row', async (t) => {
  const [url, home] = [await newDatabase(t), copyHome(t)];
  await moveVault(vaultDir, url);
  const before = await photographDatabase(url);
  const flags = ['--to', home, '--database-file', urlFile(t, url)];
  await killOften(scaled(1, 5), flags, async () => {
    assert.deepEqual(await photographDatabase(url), before);
    if (existsSync(join(home, 'leasehold.db'))) assert.deepEqual(contentOf(home), contentOf(vaultDir));
  });
  await beginMove(flags).ended;
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
  assert.deepEqual(
    readdirSync(home).filter((name) => name.endsWith('.new')),
    [],
  );
});

test('an interrupted migration stops, prints the next step, and leaves neither rows nor a snapshot', async (t) => {
  const url = await newDatabase(t);
  const move = beginMove(['--from', vaultDir, '--to', url], { TMPDIR });
  await move.tells('Migrating to');
  move.child.kill('SIGTERM');
  const { code, told } = await move.ended;
  assert.match(told, /\nleasehold: Interrupted\. Run the same command again\.\n$/);
  assert.equal(code, 1);
  assert.deepEqual(temporaries(), []);
  assert.equal(await countRows(url, 'audit_entries'), 0);
  await moveVault(vaultDir, url);
});

test('of two concurrent migrations to one database one is rejected', async (t) => {
  const url = await newDatabase(t);
  const first = beginMove(['--from', vaultDir, '--to', url]);
  await first.tells('Migrating to');
  first.child.kill('SIGSTOP');
  await assertRejected(['--from', vaultDir, '--to', url], /another migration into this database is running/);
  first.child.kill('SIGCONT');
  assert.equal((await first.ended).code, 0);
});
