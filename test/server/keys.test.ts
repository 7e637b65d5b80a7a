// The root key and the administrator's token: made when they must be, and never otherwise. SOURCE: decisions, "The product";
// security, "Silent fall-back to a new key when a key is missing (CVE-2023-0690)".

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { StartupError } from '../../src/platform/errors.ts';
import { createClient } from '../kit/client.ts';
import { dumpDatabase } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { assertNoStart, assertProgramRefuses, copyVault, photograph } from './vaults.ts';

const newKey = () => randomBytes(32).toString('base64');
const readValue = async ({ admin }: Pick<Awaited<ReturnType<typeof startTestService>>, 'admin'>) =>
  (await admin.get('/api/v1/credentials/a/b')).body.data?.value;

const NO_KEYS: Readonly<Record<string, string>> = {
  'nothing at all': '',
  'one byte too few': randomBytes(31).toString('base64'),
  'one byte too many': randomBytes(33).toString('base64'),
  'the raw bytes': randomBytes(32).toString('latin1'),
  hexadecimal: randomBytes(32).toString('hex'),
  'no padding': newKey().slice(0, -1),
  'a space behind it': `${newKey()} `,
  'a space before it': ` ${newKey()}`,
  'two lines': `${newKey()}\n${newKey()}\n`,
  'an empty line behind it': `${newKey()}\n\n`,
  'a byte order mark': `\ufeff${newKey()}`,
  'a comment': `# key\n${newKey()}\n`,
};

test('beside a vault a root key that is none is refused, whatever is wrong with it, and nothing is changed', async (t) => {
  const dataDir = await copyVault(t);
  const keyFile = join(dataDir, 'root.key');
  const right = readFileSync(keyFile);
  for (const text of Object.values(NO_KEYS)) {
    writeFileSync(keyFile, text);
    await assertNoStart(t, dataDir, /is not a root key: it must hold 32 bytes as base64/);
  }
  writeFileSync(keyFile, `${newKey()}\n`);
  await assertNoStart(t, dataDir, /is not the root key of this vault/);
  rmSync(keyFile);
  await assertNoStart(t, dataDir, /The root key is missing: .*root\.key/);
  await assertProgramRefuses(dataDir, /The root key is missing/);
  writeFileSync(keyFile, right);
  assert.equal(await readValue(await startTestService(t, [], dataDir)), 'kept');
});

test('the same is true of the file that --root-key-file names, which is never made beside a vault', async (t) => {
  const [dataDir, folder] = [await copyVault(t), temporaryDirectory(t)];
  const keyFile = join(folder, 'elsewhere.key');
  const flags = ['--root-key-file', keyFile];
  await assertNoStart(t, dataDir, /The root key is missing: .*elsewhere\.key/, flags);
  writeFileSync(keyFile, newKey());
  await assertNoStart(t, dataDir, /elsewhere\.key is not the root key of this vault/, flags);
  writeFileSync(keyFile, 'no key');
  await assertNoStart(t, dataDir, /elsewhere\.key is not a root key/, flags);
  renameSync(join(dataDir, 'root.key'), keyFile);
  assert.equal(await readValue(await startTestService(t, flags, dataDir)), 'kept');
  assert.equal(existsSync(join(dataDir, 'root.key')), false);
});

test('a root key that is there before the vault is used as it is, with or without a line end', async (t) => {
  for (const end of ['', '\n', '\r\n']) {
    const dataDir = temporaryDirectory(t);
    const text = `${newKey()}${end}`;
    writeFileSync(join(dataDir, 'root.key'), text);
    await (await startTestService(t, [], dataDir)).stop();
    assert.equal(readFileSync(join(dataDir, 'root.key'), 'utf8'), text);
    writeFileSync(join(dataDir, 'root.key'), newKey());
    await assertNoStart(t, dataDir, /is not the root key of this vault/);
  }
});

test('a root key that is none is refused before there is a vault too, and no vault is made', async (t) => {
  const dataDir = temporaryDirectory(t);
  writeFileSync(join(dataDir, 'root.key'), 'no key');
  await assert.rejects(startTestService(t, [], dataDir), /is not a root key/);
  assert.equal(existsSync(join(dataDir, 'leasehold.db')), false);
  if (STORE === 'postgres') assert.deepEqual((await dumpDatabase(dataDir))['vault'], []);
  assert.equal(readFileSync(join(dataDir, 'root.key'), 'utf8'), 'no key');
});

test('a root key elsewhere that others may read is complained about, and left as it is', async (t) => {
  const keyFile = join(temporaryDirectory(t), 'key');
  writeFileSync(keyFile, newKey());
  chmodSync(keyFile, 0o644);
  const { warnings } = await startTestService(t, ['--root-key-file', keyFile]);
  assert.match(warnings.join(), /Others than its owner may read .*key: chmod 600 it/);
  assert.equal(statSync(keyFile).mode & 0o777, 0o644);
});

test('a root key that comes through a pipe is read once', async (t) => {
  const dataDir = await copyVault(t);
  const key = readFileSync(join(dataDir, 'root.key'));
  const pipe = join(temporaryDirectory(t), 'pipe');
  execFileSync('mkfifo', ['-m', '600', pipe]);
  // A second reading would wait for a second writer.
  const written = writeFile(pipe, key);
  const { end } = await startProcess(t, dataDir, ['--root-key-file', pipe]);
  await written;
  assert.equal(await end('SIGTERM'), 0);
});

test('a root key elsewhere is made private, in a directory that is there', async (t) => {
  const folder = temporaryDirectory(t);
  const keyFile = join(folder, 'key');
  await startTestService(t, ['--root-key-file', keyFile]);
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['key']);
});

test('the token of an earlier start is dead, and its file was replaced, not rewritten', async (t) => {
  const dataDir = await copyVault(t);
  const file = join(dataDir, 'daemon.token');
  // A crash leaves it.
  const before = `lha_${'a'.repeat(43)}`;
  writeFileSync(file, `${before}\n`, { mode: 0o600 });
  const inode = statSync(file).ino;
  const { as, adminToken } = await startTestService(t, [], dataDir);
  assert.equal(readFileSync(file, 'utf8'), `${adminToken}\n`);
  assert.notEqual(statSync(file).ino, inode);
  assert.deepEqual(
    readdirSync(dataDir).filter((name) => name.endsWith('.new')),
    [],
  );
  assert.equal((await as(before).get('/api/v1/agents')).status, 401);
  assert.equal((await as(adminToken).get('/api/v1/agents')).status, 200);
});

test('a given token is neither printed nor written, and an earlier daemon.token goes away', async (t) => {
  const [dataDir, folder] = [await copyVault(t), temporaryDirectory(t)];
  const token = 'given-0123456789abcdef0123456789abcdef';
  const file = join(folder, 'token');
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  writeFileSync(join(dataDir, 'daemon.token'), `lha_${'a'.repeat(43)}\n`, { mode: 0o600 });
  const service = await startProcess(t, dataDir, ['--admin-token-file', file]);
  assert.equal((await createClient(service.address, token).get('/api/v1/agents')).status, 200);
  assert.equal(existsSync(join(dataDir, 'daemon.token')), false);
  assert.equal(service.output().includes(token), false);
  assert.equal(service.output().includes(file), true);
  assert.doesNotMatch(service.output(), /lha_/);
});

test('a given token that lies in daemon.token itself is not taken away from the one who put it there', async (t) => {
  const dataDir = await copyVault(t);
  const file = join(dataDir, 'daemon.token');
  const token = 'given-0123456789abcdef0123456789abcdef';
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  // To refuse it would be an answer too.
  await startTestService(t, ['--admin-token-file', file], dataDir).catch((error) =>
    assert.equal(error instanceof StartupError, true, String(error)),
  );
  assert.equal(existsSync(file) && readFileSync(file, 'utf8'), `${token}\n`);
});

test('a given token that is weak or malformed is refused in one line that does not repeat it', async (t) => {
  const [dataDir, folder] = [await copyVault(t), temporaryDirectory(t)];
  const file = join(folder, 'token');
  const flags = ['--admin-token-file', file];
  const weak = [
    '',
    '\n',
    'secret',
    'a'.repeat(31),
    'a'.repeat(513),
    `${'a'.repeat(40)} `,
    ` ${'a'.repeat(40)}`,
    `${'a'.repeat(20)} ${'a'.repeat(20)}`,
  ];
  for (const text of [...weak, `${'a'.repeat(40)}\n${'b'.repeat(40)}`, 'ä'.repeat(40), `${'a'.repeat(40)}\u0000`]) {
    writeFileSync(file, text, { mode: 0o600 });
    await assertNoStart(t, dataDir, /must hold one token of 32 to 512 characters/, flags);
  }
  rmSync(file);
  await assertNoStart(t, dataDir, /token cannot be read/, flags);
  mkdirSync(file);
  await assertNoStart(t, dataDir, /token cannot be read/, flags);
});

test('a given token that others may read is complained about', async (t) => {
  const file = join(temporaryDirectory(t), 'token');
  writeFileSync(file, 'a'.repeat(32));
  chmodSync(file, 0o640);
  const { warnings } = await startTestService(t, ['--admin-token-file', file]);
  assert.match(warnings.join(), /Others than its owner may read .*token: chmod 600 it/);
  assert.deepEqual(Object.keys(photograph(dirname(file))), ['.', './token']);
});
