// `leasehold key …`, `lock`, `unlock` and `agent rotate`.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { newHome } from '../kit/command.ts';
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
    /--threshold is not a flag of the kind file/,
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

test('a passphrase slot is added, tested, and unlocks a locked vault; the passphrase never reaches the service', async () => {
  const passphrase = 'correct horse battery staple\n';
  assert.match((await run('key slot add words --passphrase-file -', 'short\n')).stderr, /at least 12 characters/);
  const added = await run('key slot add words --passphrase-file - -o json', passphrase);
  assert.equal(added.code, 0, added.stderr);
  assert.equal(JSON.parse(added.stdout).kind, 'passphrase');
  assert.equal((await run('key slot test words --passphrase-file -', 'another passphrase\n')).code, 2);
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
