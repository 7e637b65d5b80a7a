// `leasehold key …`, `lock`, `unlock` and `agent rotate`. `unlock` gives the secret of a slot to the server only:
// nothing goes to a program on the default address, to another machine, or to a listener that asks for a cheap
// derivation.
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newPassphraseParameters } from '../../src/crypto/key-slots.ts';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const home = newHome({ after }, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
const run = async (line: string, input = '') => {
  const { code, stdout, stderr } = await home.leasehold(line.split(' '), { input });
  return { code, stdout, stderr };
};

test('a root key file unlocks, keys rotate, and flags of another kind are rejected', async () => {
  assert.match(
    (await run('key slot add x --kind file --threshold 2')).stderr,
    /--threshold cannot be used with --kind file/,
  );
  assert.equal((await run('key rotate --root --field key')).stdout, 'root\n');
  assert.equal((await run('key rotate --audit --root')).code, 1);
  assert.equal((await run('key slot add second --kind file')).code, 0);
  assert.match(
    (await run('key slot remove second')).stderr,
    /The slot second will no longer open the vault\. Other slots: file \(file\)\. Remove it\?/,
  );
  assert.equal((await run('key slot remove second --yes')).code, 0);
  assert.match((await run('key slot remove file --yes')).stderr, /the last key slot cannot be removed/);
  await run('lock --yes');
  const opened = await run(`unlock --root-key-file ${join(service.dataDir, 'root.key')} --field status`);
  assert.equal(opened.stdout, 'ok\n', opened.stderr);
});

test('a passphrase slot is added, tested, and unlocks a locked vault; the passphrase never reaches the server', async () => {
  const passphrase = 'correct horse battery staple\n';
  assert.match((await run('key slot add words --passphrase-file -', 'short\n')).stderr, /at least 12 characters/);
  const added = await run('key slot add words --passphrase-file - -o json', passphrase);
  assert.equal(added.code, 0, added.stderr);
  assert.equal(JSON.parse(added.stdout).kind, 'passphrase');
  const wrong = await run('key slot test words --passphrase-file - --field opens', 'another passphrase\n');
  assert.deepEqual([wrong.code, wrong.stdout], [3, 'false\n'], wrong.stderr);
  const right = await run('key slot test words --passphrase-file - --field opens', passphrase);
  assert.deepEqual([right.code, right.stdout], [0, 'true\n'], right.stderr);
  assert.equal((await run('key slot test missing')).code, 2, 'no result');
  assert.equal((await run('key slot list --field name')).stdout, 'file\nwords\n');
  const unsure = await run('lock');
  assert.equal(unsure.code, 1, 'lock asks');
  assert.match(unsure.stderr, /until one of these slots opens it: file \(file\), words \(passphrase\)\. Lock it\?/);
  assert.equal((await run('lock --dry-run')).code, 0);
  assert.equal((await service.anonymous.get('/api/v1/health')).body.data.status, 'ok');
  assert.equal((await run('lock --yes')).code, 0);
  assert.match((await run('key slot list')).stderr, /locked/);
  const unlocked = await run('unlock --passphrase-file - -o json', passphrase);
  assert.equal(unlocked.code, 0, unlocked.stderr);
  assert.equal((await service.anonymous.get('/api/v1/health')).body.data.status, 'ok');
});

test('a passphrase is one line of 12 code points, as a restore reads it', async () => {
  const several = await run('key slot add words --passphrase-file -', 'correct horse\nbattery staple\n');
  assert.equal(several.code, 1);
  assert.match(several.stderr, /standard input: must be one line/);
  const short = /standard input: must have at least 12 characters/;
  const eleven = `${'\u{1f600}'.repeat(11)}\n`;
  assert.match((await run('key slot add words --passphrase-file -', eleven)).stderr, short);
  assert.match((await run('backup - --passphrase-file -', eleven)).stderr, short);
});

test('each share is printed once, and enough of them unlock the vault', async () => {
  const { stdout, stderr } = await run('key slot add board --kind shamir --shares 3 --threshold 2 -o json');
  const [one = '', two = ''] = JSON.parse(stdout).map(({ text }: { text: string }) => text);
  assert.match(stderr, /Any 2 of these shares/);
  const untested = await run('key slot test board');
  assert.equal(untested.code, 1);
  assert.match(untested.stderr, /board is a Shamir slot, whose shares key slot test cannot test/);
  await run('lock --yes');
  assert.match((await run('unlock --share-file -', one.slice(1))).stderr, /a letter is missing or was mistyped/);
  assert.match((await run('unlock --share-file -', one)).stderr, /Given: 1 of 2 shares/);
  assert.equal((await run('unlock --share-file - --field status', two)).stdout, 'ok\n');
});

test('agent rotate replaces the key file and keeps the previous one under another name', async () => {
  const file = join(home.path, 'bot.pem');
  assert.equal((await run(`agent add bot --new-key ${file}`)).code, 0);
  const former = readFileSync(file, 'utf8');
  assert.equal((await run(`agent rotate bot --new-key ${file} --grace 0s`)).code, 0);
  assert.notEqual(readFileSync(file, 'utf8'), former);
  const kept = readdirSync(home.path).filter((name) => /^bot\.pem\.\d{8}T\d{6}\.\d{3}Z$/.test(name));
  assert.deepEqual(
    kept.map((name) => readFileSync(join(home.path, name), 'utf8')),
    [former],
  );
  assert.match((await run('agent rotate nobody --new-key other.pem')).stderr, /not registered/);
});

const MISSING = ['unlock', '--root-key-file', '/nonexistent'] as const;

/** Answers like a locked vault whose slot has these parameters, and keeps what it is sent. */
async function listen(scope: Scope, parameters: Readonly<Record<string, unknown>>) {
  const received: string[] = [];
  const server = createServer(({ method, url }, response) => {
    received.push(`${method} ${url}`);
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ data: [{ name: 'words', kind: 'passphrase', parameters }] }));
  });
  scope.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const bound = server.address();
  if (typeof bound !== 'object' || bound === null) throw new Error('the listener has no port');
  return { address: `http://127.0.0.1:${bound.port}`, received };
}

test('without a server in the data directory nothing goes to the default address', async (t) => {
  const home = newHome(t);
  for (const words of [MISSING, ['unlock'], ['unlock', '--passphrase-file', '-']]) {
    const { code, stderr } = await home.leasehold(words, { input: 'correct horse battery staple\n' });
    assert.equal(code, 1, words.join(' '));
    assert.equal(
      stderr,
      `leasehold: No server has published its address in ${home.path}/.leasehold, and another program may listen on http://127.0.0.1:7700. Start the server, or name its address with --address.\n`,
    );
  }
});

test('nothing goes to another machine, whatever names it', async (t) => {
  const home = newHome(t);
  const refused = /is not an address of this machine\. Run leasehold unlock on the machine of the server/;
  const address = 'https://vault.example:7700';
  const flags = await home.leasehold([...MISSING, '--address', address]);
  assert.deepEqual([flags.code, refused.test(flags.stderr)], [1, true], flags.stderr);
  const variable = await home.leasehold(MISSING, { environment: { LEASEHOLD_ADDR: address } });
  assert.match(variable.stderr, /LEASEHOLD_ADDR: https:\/\/vault\.example:7700 is not an address of this machine/);
  mkdirSync(join(home.path, '.leasehold'), { mode: 0o700 });
  writeFileSync(join(home.path, '.leasehold/daemon.address'), `${address}\n`);
  assert.match((await home.leasehold(MISSING)).stderr, refused);
});

test('under another account a holder names the Unix socket or the address', async (t) => {
  const socket = join(temporaryDirectory(t), 'socket');
  const onSocket = await startTestService(t, ['--listen', `unix:${socket}`]);
  for (const { address, dataDir } of [onSocket, service]) {
    const operator = newHome(t, { LEASEHOLD_DATA_DIR: dataDir });
    const holder = newHome(t);
    const file = join(holder.path, 'root.key');
    copyFileSync(join(dataDir, 'root.key'), file);
    assert.equal((await operator.leasehold(['lock', '--yes'])).code, 0);
    const words = ['unlock', '--root-key-file', file, '--address', address, '--field', 'status'];
    const { stdout, stderr } = await holder.leasehold(words);
    assert.equal(stdout, 'ok\n', stderr);
  }
});

test('parameters that make the passphrase cheap to guess, or the derivation long, end before anything is sent', async (t) => {
  for (const change of [{ memory_kib: 8, passes: 1 }, { memory_kib: 2 * 1024 ** 2 }, { passes: 100 }]) {
    const other = await listen(t, { ...newPassphraseParameters(), ...change });
    const words = ['unlock', '--passphrase-file', '-', '--address', other.address];
    const { code, stderr } = await newHome(t).leasehold(words, { input: 'correct horse battery staple\n' });
    assert.equal(code, 1, stderr);
    assert.match(stderr, /the parameters of the key slot words are invalid, or outside the bounds/);
    assert.deepEqual(other.received, ['GET /api/v1/unlock']);
  }
});

test('the server of the data directory is unlocked, and a program on the address that is in it is not', async (t) => {
  const operator = newHome(t, { LEASEHOLD_DATA_DIR: service.dataDir });
  assert.equal((await operator.leasehold(['lock', '--yes'])).code, 0);
  const file = join(service.dataDir, 'root.key');
  const unlocked = await operator.leasehold(['unlock', '--root-key-file', file, '--field', 'status']);
  assert.equal(unlocked.stdout, 'ok\n', unlocked.stderr);
  const other = await listen(t, newPassphraseParameters());
  writeFileSync(join(service.dataDir, 'daemon.address'), `${other.address}\n`);
  const { code, stderr } = await operator.leasehold(['unlock', '--root-key-file', file]);
  assert.deepEqual([code, other.received], [2, ['GET /api/v1/health']]);
  assert.match(stderr, /is not the server of .*; nothing was sent/);
});
