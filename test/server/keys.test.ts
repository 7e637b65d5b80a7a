// When the root key and the administrator's token are created. SOURCE: docs/decisions.md, "The process";
// CVE-2023-0690, a silent fall-back to a new key when a key is missing.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
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
import { join } from 'node:path';
import { test } from 'node:test';
import { slotPrivateKey, slotPublicKey } from '../../src/crypto/key-slots.ts';
import { StartupError } from '../../src/platform/errors.ts';
import { readConfiguration } from '../../src/server/configuration.ts';
import { readSecretFile } from '../../src/server/offline-keys.ts';
import { readRootKey } from '../../src/server/open-keys.ts';
import { readGivenToken } from '../../src/server/server-files.ts';
import { startupBanner } from '../../src/server/startup-banner.ts';
import { readTrimmed } from '../../src/server/webhook-client.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { ROOT } from '../conventions/source.ts';
import { dumpDatabase, executeSql } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';
import { assertNoStart, copyVault, photograph } from './vaults.ts';

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

test('a file that contains anything but one root key is a problem of the file', (t) => {
  const rootKeyFile = join(temporaryDirectory(t), 'key');
  for (const [what, text] of Object.entries(NO_KEYS)) {
    writeFileSync(rootKeyFile, text, { mode: 0o600 });
    const { secret, problem } = readRootKey({ dataDir: '.', rootKeyFile }, false, () => undefined);
    assert.equal(secret, null, what);
    assert.match(problem ?? '', /is not a root key: it must contain 32 bytes as base64/, what);
  }
});

test('an invalid root key of an existing vault is rejected, and nothing changes', async (t) => {
  const dataDir = await copyVault(t);
  const keyFile = join(dataDir, 'root.key');
  const right = readFileSync(keyFile);
  writeFileSync(keyFile, 'no key');
  await assertNoStart(t, dataDir, /is not a root key: it must contain 32 bytes as base64/);
  writeFileSync(keyFile, `${newKey()}\n`);
  await assertNoStart(t, dataDir, /is not the root key of this vault/);
  rmSync(keyFile);
  await assertNoStart(t, dataDir, /The root key is missing: .*root\.key/);
  writeFileSync(keyFile, right);
  assert.equal(await readValue(await startTestService(t, [], dataDir)), 'kept');
});

test('the same holds for --root-key-file, which is never created for an existing vault', async (t) => {
  const [dataDir, directory] = [await copyVault(t), temporaryDirectory(t)];
  const keyFile = join(directory, 'elsewhere.key');
  const flags = ['--root-key-file', keyFile];
  await assertNoStart(t, dataDir, /The root key is missing: .*elsewhere\.key/, flags);
  writeFileSync(keyFile, newKey());
  await assertNoStart(t, dataDir, /elsewhere\.key is not the root key of this vault/, flags);
  renameSync(join(dataDir, 'root.key'), keyFile);
  assert.equal(await readValue(await startTestService(t, flags, dataDir)), 'kept');
  assert.equal(existsSync(join(dataDir, 'root.key')), false);
});

test('an existing root key is used for a new vault, with or without a newline', async (t) => {
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

test('an invalid root key is rejected for a new vault too, and no vault is created', async (t) => {
  const dataDir = temporaryDirectory(t);
  writeFileSync(join(dataDir, 'root.key'), 'no key');
  await assert.rejects(startTestService(t, [], dataDir), /is not a root key/);
  assert.equal(existsSync(join(dataDir, 'leasehold.db')), false);
  if (STORE === 'postgres') assert.deepEqual((await dumpDatabase(dataDir))['vault'], []);
  assert.equal(readFileSync(join(dataDir, 'root.key'), 'utf8'), 'no key');
});

test('files elsewhere that other users may read give a warning and are unchanged', async (t) => {
  const directory = temporaryDirectory(t);
  const [keyFile, tokenFile] = [join(directory, 'key'), join(directory, 'token')];
  writeFileSync(keyFile, newKey());
  writeFileSync(tokenFile, 'a'.repeat(32));
  for (const file of [keyFile, tokenFile]) chmodSync(file, 0o644);
  const { warnings } = await startTestService(t, ['--root-key-file', keyFile, '--admin-token-file', tokenFile]);
  for (const name of ['key', 'token'])
    assert.match(warnings.join(), new RegExp(`Other users may read .*${name}\\. Run chmod 600 on it`));
  assert.equal(statSync(keyFile).mode & 0o777, 0o644);
  assert.deepEqual(Object.keys(photograph(directory)), ['.', './key', './token']);
});

test('a root key from a pipe is read once', async (t) => {
  const dataDir = await copyVault(t);
  const keyFile = join(dataDir, 'root.key');
  const pipe = join(temporaryDirectory(t), 'pipe');
  execFileSync('mkfifo', ['-m', '600', pipe]);
  // A second read would wait for a second writer. The writer is a process, because a read blocks this one.
  const writer = spawn('sh', ['-c', 'cat "$1" > "$2"', 'sh', keyFile, pipe]);
  const service = await startTestService(t, ['--root-key-file', pipe], dataDir);
  assert.equal(await readValue(service), 'kept');
  if (writer.exitCode === null) await once(writer, 'exit');
});

test('a root key file elsewhere is created private, in an existing directory', async (t) => {
  const directory = temporaryDirectory(t);
  const keyFile = join(directory, 'key');
  await startTestService(t, ['--root-key-file', keyFile]);
  assert.equal(statSync(keyFile).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(directory), ['key']);
});

test('the token of an earlier start is invalid, and its file was replaced, not overwritten', async (t) => {
  const dataDir = await copyVault(t);
  const file = join(dataDir, 'daemon.token');
  // The state after a crash.
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

test('a supplied token is not written, and an earlier daemon.token is deleted', async (t) => {
  const [dataDir, directory] = [await copyVault(t), temporaryDirectory(t)];
  const token = 'given-0123456789abcdef0123456789abcdef';
  const file = join(directory, 'token');
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  writeFileSync(join(dataDir, 'daemon.token'), `lha_${'a'.repeat(43)}\n`, { mode: 0o600 });
  const { as } = await startTestService(t, ['--admin-token-file', file], dataDir);
  assert.equal((await as(token).get('/api/v1/agents')).status, 200);
  assert.equal(existsSync(join(dataDir, 'daemon.token')), false);
});

test('the output at startup has the token, or only the file with --print-token=never or a supplied token', () => {
  const token = `lha_${'t'.repeat(43)}`;
  const printed = (flags: string[], writtenTo: string | null) => {
    const configuration = readConfiguration(['--data-dir', '/srv/vault', ...flags], {});
    assert.ok(configuration);
    const adminToken = { token: new Secret(token), writtenTo };
    const server = { address: 'http://127.0.0.1:7700', adminToken, warnings: [], status: () => 'ok' as const };
    return startupBanner(server, configuration);
  };
  const file = '/srv/vault/daemon.token';
  assert.ok(
    printed([], file).includes(
      `admin token     ${token}\n                  (new at each start; also in daemon.token there)`,
    ),
  );
  for (const [flags, writtenTo, shown] of [
    [['--print-token=never'], file, file],
    [['--admin-token-file', '/srv/token'], null, '/srv/token'],
  ] as const) {
    const text = printed([...flags], writtenTo);
    assert.ok(text.includes(`admin token     in ${shown}`), text);
    assert.equal(text.includes(token), false);
  }
  assert.throws(() => readConfiguration(['--print-token=no'], {}), {
    message: '--print-token: must be one of always, never',
  });
  // The output of a container is kept.
  assert.match(readFileSync(join(ROOT, 'deploy/Containerfile'), 'utf8'), /^ENV LEASEHOLD_PRINT_TOKEN=never /m);
});

test('the output at startup of a locked server names the next step', () => {
  const configuration = readConfiguration(['--data-dir', '/srv/vault'], {});
  assert.ok(configuration);
  const adminToken = { token: new Secret('t'), writtenTo: null };
  const server = { address: 'http://127.0.0.1:7700', adminToken, warnings: [], status: () => 'locked' as const };
  const text = startupBanner(server, configuration);
  assert.match(text, /^Leasehold is locked: [\s\S]* Open the vault with a manual key slot:\n.* unlock\n/);
  assert.doesNotMatch(text, /openai/);
});

test('a token that the operator supplied in daemon.token is not deleted', async (t) => {
  const dataDir = await copyVault(t);
  const file = join(dataDir, 'daemon.token');
  const token = 'given-0123456789abcdef0123456789abcdef';
  writeFileSync(file, `${token}\n`, { mode: 0o600 });
  // Rejecting it would be valid too.
  await startTestService(t, ['--admin-token-file', file], dataDir).catch((error) =>
    assert.equal(error instanceof StartupError, true, String(error)),
  );
  assert.equal(existsSync(file) && readFileSync(file, 'utf8'), `${token}\n`);
});

test('a weak or malformed supplied token is rejected with one line that does not repeat it', async (t) => {
  const [dataDir, directory] = [await copyVault(t), temporaryDirectory(t)];
  const file = join(directory, 'token');
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
    `${'a'.repeat(40)}\n${'b'.repeat(40)}`,
    'ä'.repeat(40),
    `${'a'.repeat(40)}\u0000`,
  ];
  const RULE = /must contain one token of 32 to 512 characters/;
  for (const text of weak) {
    writeFileSync(file, text, { mode: 0o600 });
    assert.throws(() => readGivenToken(file, () => undefined), RULE, JSON.stringify(text));
  }
  await assertNoStart(t, dataDir, RULE, flags);
  rmSync(file);
  await assertNoStart(t, dataDir, /token cannot be read/, flags);
  mkdirSync(file);
  await assertNoStart(t, dataDir, /token cannot be read/, flags);
});

test('a damaged root key file is a problem of its slot alone: another slot opens the vault', async (t) => {
  const dataDir = await copyVault(t);
  const secret = new Uint8Array(32).fill(7);
  const first = await startTestService(t, [], dataDir);
  const parameters = { salt: 'AAAAAAAAAAAAAAAAAAAAAA==', memory_kib: 65_536, passes: 3, lanes: 1 };
  const slot = { name: 'words', kind: 'passphrase', public_key: slotPublicKey(slotPrivateKey(secret)), parameters };
  assert.equal((await first.admin.post('/api/v1/key/slots', slot)).status, 201);
  await first.stop();
  writeFileSync(join(dataDir, 'root.key'), '');
  const service = await startTestService(t, [], dataDir);
  assert.match(service.warnings.join(), /vault is locked.*root\.key is not a root key.*words/);
  const given = { secret: Buffer.from(secret).toString('base64') };
  assert.equal((await service.anonymous.post('/api/v1/unlock', given)).status, 200);
  assert.equal(await readValue(service), 'kept');
});

test('the root key is not rotated while a slot in force has an altered row, which can be removed', async (t) => {
  const dataDir = await copyVault(t);
  const service = await startTestService(t, [], dataDir);
  const parameters = { salt: 'AAAAAAAAAAAAAAAAAAAAAA==', memory_kib: 65_536, passes: 3, lanes: 1 };
  const publicKey = slotPublicKey(slotPrivateKey(new Uint8Array(32).fill(7)));
  const slot = { name: 'words', kind: 'passphrase', public_key: publicKey, parameters };
  assert.equal((await service.admin.post('/api/v1/key/slots', slot)).status, 201);
  await executeSql(dataDir, "UPDATE key_slots SET created_at = created_at + 1 WHERE name = 'words'");
  const rotated = await service.admin.post('/api/v1/key/rotate', { key: 'root' });
  assert.match(assertRejected(rotated, 'INVALID_REQUEST'), /A key slot was altered outside Leasehold/);
  const { problems } = (await service.admin.get('/api/v1/audit/verify?state=true')).body.data.state;
  const [, id] = /^key slot (\S+)$/.exec(problems[0]?.subject) ?? [];
  assert.deepEqual([problems.length, problems[0]?.problem], [1, 'altered']);
  assert.equal((await service.admin.delete(`/api/v1/key/slots/${id}`)).status, 204);
  assert.equal((await service.admin.post('/api/v1/key/rotate', { key: 'root' })).status, 200);
  await service.stop();
  assert.equal(await readValue(await startTestService(t, [], dataDir)), 'kept');
});

const ENDLESS = '/dev/zero';
const RULE = /is longer than 64 KiB/;

test('a root key file that never ends is a problem of the file, and a passphrase file is rejected', () => {
  const { secret, problem } = readRootKey({ dataDir: '.', rootKeyFile: ENDLESS }, false, () => undefined);
  assert.equal(secret, null);
  assert.match(problem ?? '', RULE);
  assert.throws(() => readSecretFile(ENDLESS, () => undefined), RULE);
});

test('so is that of a token or of a receiver', () => {
  assert.throws(() => readGivenToken(ENDLESS, () => undefined), RULE);
  assert.throws(() => readTrimmed(ENDLESS), RULE);
});
