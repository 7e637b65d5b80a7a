// Altered databases: the server does not start and prints one line, or starts and warns; it never crashes.
// SOURCE: SECURITY.md, P10; docs/decisions.md, "The process". test/spec and test/vault verify damaged logs,
// and test/sqlite tests damaged SQLite files.

import assert from 'node:assert/strict';
import { existsSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { describeFailure } from '../../src/server/operator-errors.ts';
import { dumpDatabase, executeSql, lockDatabase } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { assertProgramRefuses, copyVault, sessionOfGranted } from './vaults.ts';

test('altered rows of agents and policies are not used, and the start reports their number', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(
    dataDir,
    "UPDATE policies SET actions = '[\"retrieve\"]'; UPDATE agents SET description = 'x' WHERE name = 'kept'",
  );
  const { as, admin, warnings } = await startTestService(t, [], dataDir);
  assert.match(
    warnings.join(),
    /^2 rows of agents, operators or policies in the database were altered outside Leasehold and are not used/,
  );
  assert.equal((await as(sessionOfGranted).get('/api/v1/credentials/a/b')).status, 403);
  assert.equal((await admin.get('/api/v1/agents/kept')).status, 404);
});

test('a start that cannot be recorded fails with the store’s message in one line, and the next one succeeds', async (t) => {
  const dataDir = await copyVault(t);
  const lock = await lockDatabase(dataDir);
  await assert.rejects(startTestService(t, [], dataDir), {
    message: /^[^\n]*(?:is in use by another program|lock timeout)[^\n]*$/,
  });
  await lock.release();
  const { admin } = await startTestService(t, [], dataDir);
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

test('the program fails with one line, without a stack, at an entry with the largest number that there is', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(
    dataDir,
    'UPDATE audit_entries SET seq = 9007199254740991 WHERE seq = (SELECT max(seq) FROM audit_entries)',
  );
  await assertProgramRefuses(dataDir, /^leasehold: [^\n]{20,}\n$/);
});

test('the error for a damaged or foreign database names the file and the remedy', async (t) => {
  for (const name of STORE === 'sqlite' ? ['leasehold.db', 'lock'] : ['lock']) {
    const dataDir = await copyVault(t);
    writeFileSync(join(dataDir, name), 'not a database at all, whatever its name says'.repeat(100));
    await assert.rejects(startTestService(t, [], dataDir), (error) => {
      const { line = '' } = describeFailure(error) ?? {};
      assert.ok(line.startsWith(`${join(dataDir, name)}: `), line);
      assert.match(line, /restore a backup/);
      return true;
    });
  }
});

/** Ways to lose a database, and the error of the next start. */
const LOSSES = {
  sqlite: {
    removed: async (dataDir: string) => rmSync(join(dataDir, 'leasehold.db')),
    emptied: async (dataDir: string) => truncateSync(join(dataDir, 'leasehold.db')),
    said: /the database was lost, or .*\. Restore a backup/,
  },
  postgres: {
    removed: (dataDir: string) => executeSql(dataDir, 'DROP SCHEMA leasehold CASCADE'),
    emptied: async (dataDir: string) =>
      executeSql(
        dataDir,
        `TRUNCATE ${Object.keys(await dumpDatabase(dataDir)).filter((name) => name !== 'migrations')}`,
      ),
    said: /contains no vault, but .* has served one\. Give the right database/,
  },
}[STORE];

for (const how of ['removed', 'emptied'] as const) {
  test(`a vault whose database was ${how} is not replaced by an empty one, with or without its root key`, async (t) => {
    const directory = join(temporaryDirectory(t), 'data');
    const service = await startTestService(t, [], directory);
    await service.admin.post('/api/v1/agents', { name: 'ci' });
    await service.stop();
    await LOSSES[how](directory);
    const before = readdirSync(directory).sort();
    for (const isKeyThere of [true, false]) {
      if (!isKeyThere) rmSync(join(directory, 'root.key'));
      const said = isKeyThere ? LOSSES.said : /root key is missing|database was lost|contains no vault/;
      await assert.rejects(startTestService(t, [], directory), said);
      assert.equal(existsSync(join(directory, 'root.key')), isKeyThere, 'a new root key was made');
    }
    assert.deepEqual(
      readdirSync(directory)
        .filter((name) => !name.startsWith('leasehold.db'))
        .sort(),
      before.filter((name) => !name.startsWith('leasehold.db') && name !== 'root.key'),
    );
  });
}

test('a vault with a supplied token and no agents is not replaced by an empty one either', async (t) => {
  const directory = temporaryDirectory(t);
  const [dataDir, token] = [join(directory, 'data'), join(directory, 'token')];
  writeFileSync(token, 'a'.repeat(40), { mode: 0o600 });
  const flags = ['--admin-token-file', token];
  await (await startTestService(t, flags, dataDir)).stop();
  await LOSSES.removed(dataDir);
  await assert.rejects(startTestService(t, flags, dataDir), LOSSES.said);
});
