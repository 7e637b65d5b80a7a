// Where a restore writes: nothing that is in use or holds keys is touched, and a failure or a kill leaves nothing.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import {
  backUp,
  countRows,
  identityFile,
  KINDS,
  newBackup,
  newPlace,
  type Place,
  restoreRequest,
  restoreTo,
  restoreWith,
  startAt,
  wordsFor,
} from './fixture.ts';

const scope = { after };
const { source, file, verifierKey } = await newBackup(scope);
const workerId = readFileSync(join(source.dataDir, 'agents', 'worker', 'agent_id'), 'utf8').trim();

/** Puts another vault's key of an agent with the same name into the directory. */
function addAgentDir({ dataDir }: Place): string {
  const dir = join(dataDir, 'agents', 'worker');
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  writeFileSync(join(dir, 'private_key.pem'), 'of another vault');
  return join(dir, 'private_key.pem');
}

/** Makes writing the keys of agents fail. */
function blockAgentKeys({ dataDir }: Place): string {
  mkdirSync(join(dataDir, 'agents'), { mode: 0o700 });
  const blocked = join(dataDir, 'agents', '.pending');
  writeFileSync(blocked, '');
  return blocked;
}

for (const kind of KINDS) {
  test(`a restore to ${kind} refuses a directory that has keys of agents, and leaves them`, async (t) => {
    const place = await newPlace(t, kind, source.dataDir);
    const key = addAgentDir(place);
    const { code, told } = await restoreWith(wordsFor(t, file, place));
    assert.match(told.at(-1) ?? '', /agents has private keys of agents, which the restore would replace\. Nothing was/);
    assert.equal(code, 1);
    assert.equal(readFileSync(key, 'utf8'), 'of another vault');
    assert.equal(existsSync(join(place.dataDir, 'leasehold.db')), false);
  });

  test(`a restore to ${kind} that cannot write the keys of agents leaves nothing, and can be repeated`, async (t) => {
    const place = await newPlace(t, kind, source.dataDir);
    const blocked = blockAgentKeys(place);
    const { code, told } = await restoreWith(wordsFor(t, file, place));
    assert.match(told.at(-1) ?? '', /\.pending must be a directory/);
    assert.equal(code, 1);
    for (const name of ['rollback.marker', 'leasehold.db'])
      assert.equal(existsSync(join(place.dataDir, name)), false, name);
    rmSync(blocked);
    const { out } = await restoreTo(t, file, place);
    assert.doesNotMatch(out, /WARNING|--accept-rollback/);
    const restored = await startAt(t, place);
    assert.deepEqual(restored.warnings, []);
  });

  test(`a restore to ${kind} replaces the keys that a killed restore has left`, async (t) => {
    const place = await newPlace(t, kind, source.dataDir);
    const left = join(place.dataDir, 'agents', '.pending', workerId);
    mkdirSync(left, { recursive: true, mode: 0o700 });
    writeFileSync(join(left, 'private_key.pem'), 'half a');
    await restoreTo(t, file, place);
    assert.deepEqual(readdirSync(join(place.dataDir, 'agents')).sort(), ['.pending', 'worker']);
    const restored = await startAt(t, place);
    assert.ok(await logIn(restored.address, 'worker', readAgentKey(place.dataDir, 'worker')));
  });
}

test('with a database the directory of a running service is refused', async (t) => {
  const { flags } = await newPlace(t, 'postgres');
  const { code, told } = await restoreWith(wordsFor(t, file, { dataDir: source.dataDir, flags }));
  assert.match(told.at(-1) ?? '', /^Another Leasehold runs on /);
  assert.equal(code, 1);
});

test('with a database the data directory of the environment gets no keys', async (t) => {
  const { flags } = await newPlace(t, 'postgres');
  const words = [file, '--identity-file', identityFile(t), ...flags];
  assert.equal(restoreRequest(words, { LEASEHOLD_DATA_DIR: source.dataDir }).dataDir, null);
});

/** A place in which a restore was killed while it verified the restored state. */
async function placeOfKilled(t: TestContext): Promise<Place> {
  let told = '';
  for (let tries = 0; tries < 10; tries++) {
    const place = await newPlace(t, 'postgres', source.dataDir);
    const words = [...wordsFor(t, file, place), '--verifier-key', verifierKey];
    const child = spawn(process.execPath, ['src/bin/leasehold.ts', 'restore', ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const exited = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
    told = '';
    for await (const chunk of child.stderr) {
      told += chunk;
      if (told.includes('Verifying the restored state')) child.kill('SIGKILL');
    }
    const end = await exited;
    if (end === 'SIGKILL') return place;
    // On a busy machine the signal may come after the end.
    assert.equal(end, 0, told);
  }
  return assert.fail(told);
}

test('no service starts on a database that a killed restore has left without its entry', async (t) => {
  const place = await placeOfKilled(t);
  const url = readFileSync(place.flags[1] ?? '', 'utf8').trim();
  assert.ok((await countRows(url, 'audit_entries')) > 0, 'it was killed before it committed the rows');
  await assert.rejects(startAt(t, place), /The vault's record in the database was altered outside/);
});

test('a restore says that the directory has seen a checkpoint of a later log', async (t) => {
  const place = await newPlace(t, 'sqlite');
  const original = await startAt(t, place);
  const early = await backUp(t, original);
  for (const n of [1, 2, 3]) await original.admin.post('/api/v1/credentials', { path: `a/${n}`, value: 'x' });
  await original.stop();
  for (const name of readdirSync(place.dataDir)) {
    if (name !== 'checkpoints.log' && name !== 'root.key') rmSync(join(place.dataDir, name), { recursive: true });
  }
  const { out } = await restoreTo(t, early, place);
  assert.match(
    out,
    /WARNING {2}The database has lost entries of the log: .*checkpoints\.log has a signed checkpoint of \d+/,
  );
  assert.match(out, /--accept-rollback\n$/);
});
