// Migrations that fail: each with one line, and with an unchanged source and target.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { migrate } from '../../src/server/migrate.ts';
import { parseAddress } from '../../src/store/postgres/address.ts';
import { createClient } from '../kit/client.ts';
import { newDatabase } from '../kit/database.ts';
import { executeSql } from '../kit/direct-db.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { querySql } from '../kit/postmaster.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { photograph, photographRunning } from '../server/vaults.ts';
import { fillVault } from './full-vault.ts';
import {
  assertRejected,
  beginMove,
  configurationOf,
  contentOf,
  countRows,
  moveVault,
  photographDatabase,
  urlFile,
} from './migrations.ts';

const scope = { after };
const vaultDir = join(temporaryDirectory(scope), 'data');
const service = await startTestService(scope, [], vaultDir);
await fillVault(service);
await service.stop();

function copyHouse(t: Scope): string {
  const dataDir = join(temporaryDirectory(t), 'data');
  cpSync(vaultDir, dataDir, { recursive: true });
  return dataDir;
}

const homeOf = (t: Scope): string => {
  const home = join(temporaryDirectory(t), 'home');
  cpSync(vaultDir, home, { recursive: true, filter: (from) => !/leasehold\.db/.test(from) });
  return home;
};

/** Whether the target is still empty. */
async function isUntouched(url: string): Promise<boolean> {
  const [row] = await querySql(url, "SELECT to_regnamespace('leasehold') IS NULL AS is_so");
  return row?.['is_so'] === true;
}

test('a wrong root key is rejected first, in either direction', async (t) => {
  const [dataDir, url] = [copyHouse(t), await newDatabase(t)];
  writeFileSync(join(dataDir, 'root.key'), `${Buffer.alloc(32, 7).toString('base64')}\n`);
  const before = photograph(dataDir);
  await assertRejected(
    ['--from', dataDir, '--to', url],
    /root\.key is not the root key of this vault\. Nothing was changed/,
  );
  assert.deepEqual(photograph(dataDir), before);
  assert.equal(await isUntouched(url), true);
  await moveVault(vaultDir, url);
  const home = homeOf(t);
  cpSync(join(dataDir, 'root.key'), join(home, 'root.key'));
  const empty = photograph(home);
  await assertRejected(['--from', url, '--to', home], /is not the root key of this vault\. Nothing was changed/);
  assert.deepEqual(photograph(home), empty);
  await assertRejected(['--from', url, '--to', join(home, 'new')], /The root key is missing: .*new\/root\.key/);
  await moveVault(url, join(home, 'new'), ['--root-key-file', join(vaultDir, 'root.key')]);
});

test('a source with a running service is rejected, and the service continues', async (t) => {
  const [dataDir, url] = [copyHouse(t), await newDatabase(t)];
  const { address, adminToken } = await startProcess(t, dataDir);
  const before = photographRunning(dataDir);
  await assertRejected(
    ['--from', dataDir, '--to', url],
    /A Leasehold runs on .*data\. Nothing was changed\. Stop it first/,
  );
  assert.deepEqual(photographRunning(dataDir), before);
  assert.equal(await isUntouched(url), true);
  const { status } = await createClient(address, adminToken).get('/api/v1/credentials/stage/key');
  assert.equal(status, 200);
});

test('a source without its rollback marker or with lost entries is rejected, and so is a target with a later marker', async (t) => {
  const [ahead, url] = [copyHouse(t), await newDatabase(t)];
  await (await startTestService(t, [], ahead)).stop();
  const [behind, bare, home] = [copyHouse(t), copyHouse(t), homeOf(t)];
  for (const dir of [behind, home]) cpSync(join(ahead, 'rollback.marker'), join(dir, 'rollback.marker'));
  rmSync(join(bare, 'rollback.marker'));
  const loss = /has lost entries of the log: this node has seen entry \d+, and the log ends at \d+/;
  await assertRejected(['--from', behind, '--to', url], loss);
  await assertRejected(['--from', bare, '--to', url], /rollback\.marker is missing/);
  assert.equal(await isUntouched(url), true);
  await moveVault(vaultDir, url);
  await assertRejected(['--from', url, '--to', home], loss);
});

test('a node that writes is detected before the target becomes a vault', async (t) => {
  const [url, home] = [await newDatabase(t), homeOf(t)];
  await moveVault(vaultDir, url);
  const node = await startProcess(t, homeOf(t), ['--database', url]);
  const writes = (): void => {
    const headers = { authorization: `Bearer ${node.adminToken}` };
    const script = 'const [url, init] = process.argv.slice(1); await fetch(url, JSON.parse(init));';
    const init = JSON.stringify({ headers });
    const at = `${node.address}/api/v1/credentials/stage/key`;
    const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', script, at, init]);
    assert.equal(status, 0);
  };
  const moving = migrate(
    {
      from: { kind: 'database', address: parseAddress(url) },
      to: { kind: 'directory', dir: home },
      configuration: configurationOf(vaultDir),
      slotPassphrase: null,
      acceptsBrokenChain: false,
    },
    { signal: new AbortController().signal, say: () => {}, progress: (what) => what === 'leases' && writes() },
  );
  await assert.rejects(
    moving,
    /^Error: A node still writes to PostgreSQL at [^\n]*\. Stop all nodes and run this command again\.$/,
  );
  assert.equal(existsSync(join(home, 'leasehold.db')), false);
});

test('a target with other content is rejected with one line and not changed', async (t) => {
  const [url, other] = [await newDatabase(t), homeOf(t)];
  await (await startTestService(t, ['--database', url], join(temporaryDirectory(t), 'node'))).stop();
  const before = await photographDatabase(url);
  await assertRejected(
    ['--from', vaultDir, '--to', url],
    /^leasehold: PostgreSQL at .*, is not empty\. Nothing was changed\. Give an empty database/,
  );
  assert.deepEqual(await photographDatabase(url), before);

  await querySql(
    url,
    'DELETE FROM leasehold.vault; DELETE FROM leasehold.audit_head; DELETE FROM leasehold.audit_entries',
  );
  await querySql(url, "INSERT INTO leasehold.spent_challenges VALUES ('x', 1)");
  await assertRejected(
    ['--from', vaultDir, '--to', url],
    /is not empty\. Nothing was changed\. Give an empty database/,
  );

  const theirs = join(temporaryDirectory(t), 'theirs');
  mkdirSync(theirs);
  writeFileSync(join(theirs, 'letter.txt'), 'dear');
  await querySql(url, 'DROP SCHEMA leasehold CASCADE');
  await moveVault(vaultDir, url);
  const key = ['--root-key-file', join(vaultDir, 'root.key')];
  await assertRejected(
    ['--from', url, '--to', theirs, ...key],
    /contains other files and no vault\. Nothing was changed/,
  );
  assert.deepEqual(Object.keys(photograph(theirs)), ['.', './letter.txt']);
  await (await startTestService(t, [], join(other, 'another'))).stop();
  await assertRejected(
    ['--from', url, '--to', join(other, 'another'), ...key],
    /leasehold\.db exists\. Nothing was changed\. Give a directory without a database/,
  );
  await startProcess(t, join(other, 'another'));
  await assertRejected(['--from', url, '--to', join(other, 'another'), ...key], /Another Leasehold runs on /);
});

test('a broken chain is rejected with its entry; if accepted, the copy has the same break', async (t) => {
  const [dataDir, url] = [copyHouse(t), await newDatabase(t)];
  await executeSql(
    dataDir,
    "UPDATE audit_entries SET agent_name = 'nobody' WHERE seq = 9; DELETE FROM audit_entries WHERE seq = 20",
  );
  const broken =
    /The audit chain of .* is broken at entry 9: its content or its MAC was altered\. Nothing was migrated/;
  await assertRejected(['--from', dataDir, '--to', url], broken);
  assert.equal(await isUntouched(url), true);
  const { out } = await moveVault(dataDir, url, ['--accept-broken-chain']);
  assert.match(out, /The chain is broken at entry 9, as it was before: its content or its MAC was altered\./);
  await assertRejected(['--from', url, '--to', homeOf(t)], broken);
  const home = homeOf(t);
  await moveVault(url, home, ['--accept-broken-chain']);
  assert.deepEqual(contentOf(home), contentOf(dataDir));
});

for (const [what, sql, why] of [
  ['whose end was cut off', 'DELETE FROM audit_entries WHERE seq > 30', /entry 31: .*the end of the log was cut off/],
  ['whose head record was deleted', 'DELETE FROM audit_head', /the head record is missing/],
  ['of which nothing is left', 'DELETE FROM audit_entries', /entry 1: the entry is missing/],
] as const) {
  test(`a log ${what} is copied as it is, if accepted`, async (t) => {
    const [dataDir, url, home] = [copyHouse(t), await newDatabase(t), homeOf(t)];
    await executeSql(dataDir, sql);
    await assertRejected(['--from', dataDir, '--to', url], why);
    await moveVault(dataDir, url, ['--accept-broken-chain']);
    await moveVault(url, home, ['--accept-broken-chain']);
    assert.deepEqual(contentOf(home), contentOf(dataDir));
  });
}

test('a source without a vault is rejected, and nothing is created in it', async (t) => {
  const [url, empty, folder] = [await newDatabase(t), await newDatabase(t), temporaryDirectory(t)];
  const key = ['--root-key-file', join(vaultDir, 'root.key')];
  await assertRejected(['--from', folder, '--to', url, ...key], /contains no vault: leasehold\.db is missing/);
  assert.deepEqual(Object.keys(photograph(folder)), ['.']);
  await assertRejected(
    ['--from', empty, '--to', join(folder, 'new'), ...key],
    /PostgreSQL at [^\n]*, contains no vault/,
  );
  assert.equal(await isUntouched(empty), true);
  const linked = copyHouse(t);
  cpSync(join(linked, 'leasehold.db'), join(folder, 'elsewhere.db'));
  const link = join(folder, 'linked');
  mkdirSync(link);
  symlinkSync(join(folder, 'elsewhere.db'), join(link, 'leasehold.db'));
  await assertRejected(['--from', link, '--to', url, ...key], /must be a file, and not a link to one/);
});

test('a field that has not the form of its column is named, and nothing is migrated', async (t) => {
  const [dataDir, url] = [copyHouse(t), await newDatabase(t)];
  const database = new DatabaseSync(join(dataDir, 'leasehold.db'));
  database.prepare("UPDATE credentials SET description = ? WHERE path = 'never/asked'").run('a\u0000b');
  database.close();
  await assertRejected(
    ['--from', dataDir, '--to', url],
    /Row \d+ of credentials: description must be .* without U\+0000\. Nothing was migrated\./,
  );
  assert.equal(await countRows(url, 'vault'), 0);
});

test('a usage error gives 2, names the flag, and shows no password', async (t) => {
  const [url, folder] = [await newDatabase(t), temporaryDirectory(t)];
  const wrongly = (flags: readonly string[], reason: RegExp, environment = {}) =>
    assertRejected(flags, reason, 2, environment);
  await wrongly([], /Give --from and --to/);
  await wrongly(['--from', vaultDir], /Give --from and --to/);
  await wrongly(['--from', vaultDir, '--to', folder], /must be a data directory, and the other one a PostgreSQL/);
  await wrongly(['--from', url, '--to', `${url}_other`], /must be a data directory, and the other one a PostgreSQL/);
  await wrongly(['--from', vaultDir, '--to', 'mysql://a:secret@b/c'], /--to: must be postgres:/);
  await wrongly(['--from', vaultDir, '--to', url, '--database-file', urlFile(t, url)], /replaces --from or --to/);
  await wrongly(['--from', vaultDir, '--to', folder, '--now'], /Unknown option '--now'/);
  await wrongly(['--from', vaultDir], /LEASEHOLD_DATABASE_URL: must be/, { LEASEHOLD_DATABASE_URL: 'sqlite:secret' });
  await wrongly([vaultDir, url], /Unexpected argument/);
  await wrongly([], /npm kept --from for itself: put -- before the flags/, { npm_config_from: 'x' });
  assert.equal(readFileSync(join(vaultDir, 'root.key'), 'utf8').length, 45);
});

test('the process exits with 2 after a usage error, with 1 after a rejected migration, and prints one line', async (t) => {
  for (const [flags, code] of [
    [[], 2],
    [['--from', temporaryDirectory(t), '--to', await newDatabase(t)], 1],
  ] as const) {
    const ended = await beginMove(flags).ended;
    assert.deepEqual([ended.code, ended.out], [code, '']);
    assert.match(ended.told, /(?:^|\n)leasehold: [^\n]+\n$/);
  }
});

test('the environment can name the PostgreSQL database as source or target', async (t) => {
  const [url, home] = [await newDatabase(t), homeOf(t)];
  const environment = { LEASEHOLD_DATABASE_URL: url, LEASEHOLD_ROOT_KEY_FILE: join(vaultDir, 'root.key') };
  assert.equal((await beginMove(['--from', vaultDir], environment).ended).code, 0);
  assert.equal((await beginMove(['--to', home], environment).ended).code, 0);
  assert.deepEqual(contentOf(home), contentOf(vaultDir));
});
