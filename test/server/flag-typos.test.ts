// Mistyped flags and variables: no file changes, and one line says how to fix the command.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfiguration } from '../../src/server/configuration.ts';
import { dumpDatabase, executeSql } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { runProgram } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const start = (dataDir: string) => runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0']);

test('a directory with other files is rejected and left unchanged', async (t) => {
  const directory = temporaryDirectory(t);
  chmodSync(directory, 0o1777);
  writeFileSync(join(directory, 'somebody’s.txt'), 'x');
  const { code, output } = await start(directory);
  assert.equal(code, 1);
  assert.match(output, /^leasehold: .* contains other files and no vault\. Nothing was changed\. .*\n$/);
  assert.equal(statSync(directory).mode & 0o7777, 0o1777);
  assert.deepEqual(readdirSync(directory), ['somebody’s.txt']);
});

test('the directory of an empty volume is accepted', async (t) => {
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'lost+found'), '');
  const service = await startTestService(t, [], directory);
  assert.ok(existsSync(join(directory, 'root.key')));
  await service.stop();
});

test('an empty variable is rejected by name, like an empty flag', () => {
  for (const flag of ['data-dir', 'root-key-file', 'listen']) {
    const variable = `LEASEHOLD_${flag.toUpperCase().replaceAll('-', '_')}`;
    assert.throws(() => readConfiguration([], { [variable]: '' }), {
      name: 'UsageError',
      message: `${variable} is empty: give it a value as for --${flag}, or unset it`,
    });
  }
});

test('flags that npm took are an error', async () => {
  const { code, output } = await runProgram([], { npm_config_data_dir: '/srv/vault' });
  assert.equal(code, 2);
  assert.match(
    output,
    /^leasehold: npm kept --data-dir for itself: put -- before the flags, as in npm start -- --data-dir …\n$/,
  );
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

test('the error for a damaged or foreign database names the file and the remedy', async (t) => {
  for (const name of STORE === 'sqlite' ? ['leasehold.db', 'lock'] : ['lock']) {
    const directory = join(temporaryDirectory(t), 'data');
    await (await startTestService(t, [], directory)).stop();
    writeFileSync(join(directory, name), 'not a database at all, whatever its name says'.repeat(100));
    const { code, output } = await start(directory);
    assert.equal(code, 1);
    assert.ok(output.startsWith(`leasehold: ${join(directory, name)}: `), output);
    assert.match(output, /restore a backup/);
  }
});
