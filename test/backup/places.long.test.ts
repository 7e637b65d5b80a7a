// Where a restore writes: nothing that is in use or holds keys is touched, and a failure leaves nothing.

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import {
  backUp,
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
const { source, file } = await newBackup(scope);
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
