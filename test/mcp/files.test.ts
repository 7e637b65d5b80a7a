// Values in files: in the operator's directory, under names that are not paths, until the lease ends, and never in a
// response.

import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { FileDirectory } from '../../src/mcp/file-directory.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { connect, shows, startStage, TRANSPORTS, VALUE } from './fixture.ts';

const PATH = 'prod/db/password';
const write = { path: PATH, name: 'password' };

async function begin(t: TestContext, over: (typeof TRANSPORTS)[number] = 'http') {
  const stage = await startStage(t);
  const statuses = async () => (await stage.agent.leases.list()).data.map(({ status }) => status);
  return { ...stage, statuses, ...(await connect(t, stage.mcp, over)) };
}

for (const over of TRANSPORTS) {
  test(`over ${over} a value is written to a private file, and only the path is returned`, async (t) => {
    const { use, transcript, filesDir, agent } = await begin(t, over);
    const { file, lease_id, path } = await use('write_credential_to_file', write);
    assert.equal(file, join(filesDir, 'password'));
    assert.equal(path, PATH);
    assert.equal(readFileSync(String(file), 'utf8'), VALUE);
    assert.equal(lstatSync(String(file)).mode & 0o777, 0o600);
    assert.equal((await agent.leases.read(String(lease_id))).status, 'active');
    assert.equal(shows(transcript()), false);
  });

  test(`over ${over} remove_file removes the file and ends its lease`, async (t) => {
    const { use, refusal, filesDir, statuses } = await begin(t, over);
    await use('write_credential_to_file', write);
    await use('remove_file', { name: 'password' });
    assert.deepEqual(readdirSync(filesDir), []);
    assert.deepEqual(await statuses(), ['revoked']);
    assert.match(await refusal('remove_file', { name: 'password' }), /^NOT_FOUND: /);
  });
}

test('when the server stops its files are removed and its leases revoked', async (t) => {
  const { use, filesDir, statuses, mcp, refusal } = await begin(t);
  await use('write_credential_to_file', write);
  await use('write_credential_to_file', { ...write, name: 'another' });
  assert.equal(await mcp.close(), 0);
  assert.deepEqual(readdirSync(filesDir), []);
  assert.deepEqual(await statuses(), ['revoked', 'revoked']);
  assert.match(await refusal('write_credential_to_file', write), /^STOPPING: /);
});

test('a file is removed when its lease ends', async (t) => {
  const { use, filesDir } = await begin(t);
  await use('write_credential_to_file', { ...write, ttl_seconds: 6 });
  assert.deepEqual(readdirSync(filesDir), ['password']);
  // By the local clock, before the service is asked for the lease's status.
  await until(() => readdirSync(filesDir).length === 0);
});

test('a file is removed soon after its lease was revoked', async (t) => {
  const { use, filesDir, service } = await begin(t);
  await use('write_credential_to_file', write);
  await service.admin.post('/api/v1/leases/revoke', { agent: 'builder' });
  await until(() => readdirSync(filesDir).length === 0);
});

test('a second value under the same name replaces the first, whose lease ends', async (t) => {
  const { use, service, filesDir, statuses } = await begin(t);
  await service.admin.post('/api/v1/credentials', { path: 'prod/other', value: 'another value' });
  await use('write_credential_to_file', write);
  const { file } = await use('write_credential_to_file', { path: 'prod/other', name: 'password' });
  assert.equal(readFileSync(String(file), 'utf8'), 'another value');
  assert.deepEqual(readdirSync(filesDir), ['password']);
  assert.deepEqual((await statuses()).toSorted(), ['active', 'revoked']);
});

test('a moved or linked file is emptied when its lease ends', async (t) => {
  const { use, filesDir } = await begin(t);
  const away = temporaryDirectory(t);
  const { file } = await use('write_credential_to_file', write);
  linkSync(String(file), join(away, 'linked'));
  await use('remove_file', { name: 'password' });
  assert.equal(readFileSync(join(away, 'linked'), 'utf8'), '');
  await use('write_credential_to_file', write);
  renameSync(join(filesDir, 'password'), join(away, 'moved'));
  writeFileSync(join(filesDir, 'password'), 'of another user');
  await use('remove_file', { name: 'password' });
  assert.equal(readFileSync(join(away, 'moved'), 'utf8'), '');
  assert.equal(readFileSync(join(filesDir, 'password'), 'utf8'), 'of another user');
});

for (const name of [
  '../password',
  '..',
  '.',
  '',
  '.hidden',
  'a/b',
  'a\\b',
  '/etc/password',
  'a\0b',
  'a\nb',
  '-rf',
  'ä',
  'a'.repeat(65),
]) {
  test(`a file cannot be named ${JSON.stringify(name)}`, async (t) => {
    const { refusal, filesDir, statuses, transcript } = await begin(t);
    assert.match(await refusal('write_credential_to_file', { path: PATH, name }), /^Input validation error/);
    assert.deepEqual(readdirSync(filesDir), []);
    assert.deepEqual(await statuses(), []);
    assert.equal(shows(transcript()), false);
  });
}

test('files that the server did not write are neither overwritten, removed nor followed, and the lease ends', async (t) => {
  const { refusal, filesDir, statuses, transcript } = await begin(t);
  const outside = join(temporaryDirectory(t), 'outside');
  writeFileSync(join(filesDir, 'file'), 'mine');
  symlinkSync(outside, join(filesDir, 'link'));
  mkdirSync(join(filesDir, 'folder'));
  for (const name of ['file', 'link', 'folder']) {
    assert.match(await refusal('write_credential_to_file', { path: PATH, name }), /^NAME_TAKEN: /);
    assert.match(await refusal('remove_file', { name }), /^NOT_FOUND: /);
  }
  assert.equal(readFileSync(join(filesDir, 'file'), 'utf8'), 'mine');
  assert.equal(existsSync(outside), false);
  assert.deepEqual(await statuses(), ['revoked', 'revoked', 'revoked']);
  assert.equal(shows(transcript()), false);
});

test('a directory that was replaced or opened to others receives no value', async (t) => {
  const { refusal, filesDir, statuses } = await begin(t);
  chmodSync(filesDir, 0o755);
  assert.match(await refusal('write_credential_to_file', write), /^FAILED: /);
  chmodSync(filesDir, 0o700);
  renameSync(filesDir, `${filesDir}-moved`);
  t.after(() => renameSync(`${filesDir}-moved`, filesDir));
  mkdirSync(join(temporaryDirectory(t), 'exchanged'));
  symlinkSync(`${filesDir}-moved`, filesDir);
  assert.match(await refusal('write_credential_to_file', write), /^FAILED: /);
  assert.deepEqual(readdirSync(`${filesDir}-moved`), []);
  assert.deepEqual(await statuses(), ['revoked', 'revoked']);
});

test('a denied or missing path leaves no file', async (t) => {
  const { refusal, filesDir } = await begin(t);
  assert.match(
    await refusal('write_credential_to_file', { path: 'other/x', name: 'x' }),
    /^ACCESS_DENIED: .*explain_access/,
  );
  assert.match(await refusal('write_credential_to_file', { path: 'prod/none', name: 'x' }), /^NOT_FOUND: /);
  for (const path of ['../leases', 'prod/x/../db/password', 'prod/db/./password', 'prod%2Fdb%2Fpassword', '']) {
    assert.match(await refusal('write_credential_to_file', { path, name: 'x' }), /^INVALID_REQUEST: path: /, path);
  }
  assert.deepEqual(readdirSync(filesDir), []);
});

test('at most 64 files exist', async (t) => {
  const { use, refusal, filesDir } = await begin(t);
  for (let n = 0; n < 64; n++) await use('write_credential_to_file', { path: PATH, name: `n${n}` });
  assert.match(await refusal('write_credential_to_file', { path: PATH, name: 'more' }), /^BUSY: /);
  await use('write_credential_to_file', { path: PATH, name: 'n7' });
  assert.equal(readdirSync(filesDir).length, 64);
});

test('a directory that is not private, belongs to another user, or is a link is rejected at the start', async (t) => {
  const logged: string[] = [];
  const log = (line: string): void => void logged.push(line);
  const folder = temporaryDirectory(t);
  mkdirSync(join(folder, 'open'), { mode: 0o755 });
  mkdirSync(join(folder, 'private'), { mode: 0o700 });
  symlinkSync(join(folder, 'private'), join(folder, 'link'));
  writeFileSync(join(folder, 'file'), '');
  for (const name of ['open', 'link', 'file', 'missing']) {
    await assert.rejects(FileDirectory.open(join(folder, name), log), UsageError, name);
  }
  await assert.rejects(FileDirectory.open('relative', log), UsageError);
  await FileDirectory.open(join(folder, 'private'), log);
  assert.deepEqual(logged, []);
});
