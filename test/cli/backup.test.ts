/** `leasehold backup`: its file, its keys, and verification. A server cannot choose the file's name. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs, { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { writeBackup } from '../../src/backup/file.ts';
import { BACKUP_FORMAT, BackupWriter } from '../../src/backup/records.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const scope = { after };
const service = await startTestService(scope);
const home = newHome(scope, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
const directory = temporaryDirectory(scope);
const at = (name: string): string => join(directory, name);
const identity = await generateX25519Identity();
const recipient = await identityToRecipient(identity);
const requested = async (): Promise<number> =>
  (await service.admin.get('/api/v1/audit?event_type=service.backup&limit=1')).body.meta.total;
writeFileSync(at('identity'), `# public key: ${recipient}\n${identity}\n`, { mode: 0o600 });
writeFileSync(at('recipients'), `# the operators\n${recipient}\n`);
writeFileSync(at('passphrase'), 'four words of a passphrase\n', { mode: 0o600 });

test('a backup is private, verified, named only when it is complete, and never replaces a file', async () => {
  const words = ['backup', at('one.age'), '--recipients-file', at('recipients')];
  const { code, stdout, stderr } = await home.leasehold([...words, '-o', 'json']);
  assert.equal(code, 0, stderr);
  const told = JSON.parse(stdout);
  assert.deepEqual([told.file, told.store, told.opened_by], [at('one.age'), 'sqlite', 'file (file)']);
  assert.equal(statSync(at('one.age')).mode & 0o777, 0o600);
  assert.equal(statSync(at('one.age')).size, told.size_bytes);
  const again = await home.leasehold(words);
  assert.deepEqual([again.code, again.stdout], [1, '']);
  assert.match(again.stderr, /one\.age already exists\. Choose another name/);
  const verified = await home.leasehold([
    'backup',
    at('one.age'),
    '--verify',
    '--identity-file',
    at('identity'),
    '-o',
    'json',
  ]);
  assert.deepEqual(JSON.parse(verified.stdout), told);
  assert.deepEqual(
    readdirSync(directory).filter((name) => name.endsWith('.new')),
    [],
  );
});

/** Encrypts the backup again, with the passphrase at a cost of milliseconds instead of seconds. */
async function lockCheaply(backup: string, to: string): Promise<void> {
  const decrypter = new Decrypter();
  decrypter.addIdentity(identity);
  const encrypter = new Encrypter();
  encrypter.setPassphrase('four words of a passphrase');
  encrypter.setScryptWorkFactor(4);
  writeFileSync(to, await encrypter.encrypt(await decrypter.decrypt(readFileSync(backup))));
}

test('a passphrase opens a backup; a wrong one, a short one and a damaged file are reported', async () => {
  const file = at('locked.age');
  await lockCheaply(at('one.age'), file);
  assert.equal((await home.leasehold(['backup', file, '--verify', '--passphrase-file', at('passphrase')])).code, 0);
  const wrong = await home.leasehold(['backup', file, '--verify', '--passphrase-file', '-'], {
    input: 'another one\n',
  });
  assert.deepEqual([wrong.code, wrong.stdout], [3, '']);
  assert.match(wrong.stderr, /^leasehold: The passphrase does not open .*locked\.age\.\n$/);
  const short = await home.leasehold(['backup', at('short.age'), '--passphrase-file', '-'], { input: 'too short\n' });
  assert.match(short.stderr, /standard input: must have at least 12 characters/);
  const bytes = readFileSync(at('one.age'));
  bytes[bytes.length - 40] = (bytes[bytes.length - 40] ?? 0) ^ 1;
  writeFileSync(at('damaged.age'), bytes);
  const damaged = await home.leasehold(['backup', at('damaged.age'), '--verify', '--identity-file', at('identity')]);
  assert.equal(damaged.code, 3);
  assert.match(damaged.stderr, /The backup is damaged: it does not authenticate/);
});

test('a file with a secret that other users may read is told', async () => {
  for (const name of ['identity', 'passphrase']) {
    const words = ['backup', at('one.age'), '--verify', `--${name}-file`];
    writeFileSync(at('open'), readFileSync(at(name)));
    chmodSync(at('open'), 0o644);
    const { stderr } = await home.leasehold([...words, at('open')]);
    assert.match(stderr, /^Other users may read \S+\/open\. Run chmod 600 on it\.\n/, name);
    chmodSync(at('open'), 0o600);
    assert.doesNotMatch((await home.leasehold([...words, at('open')])).stderr, /Other users/);
  }
});

test('a named pipe is not a backup, and the command does not wait for its writer', async () => {
  execFileSync('mkfifo', [at('pipe')]);
  const { code, stderr } = await home.leasehold(['backup', at('pipe'), '--verify', '--identity-file', at('identity')]);
  assert.match(stderr, /pipe is not a file\./);
  assert.equal(code, 3);
});

test('wrong flags are told before anything is requested', async () => {
  const cases: readonly [string[], RegExp][] = [
    [[at('x.age'), '--recipient', 'ssh-ed25519 AAAA'], /--recipient: each line must be an age recipient/],
    [[at('x.age'), '--recipient', 'age1nonsense'], /A recipient is malformed/],
    [[at('x.age'), '--recipient', recipient, '--passphrase-file', at('passphrase')], /not both/],
    [[at('x.age'), '--identity-file', at('identity')], /--identity-file is for --verify/],
    [[at('x.age')], /cannot prompt without a terminal/],
  ];
  const before = await requested();
  for (const [words, reason] of cases) {
    const { code, stderr } = await home.leasehold(['backup', ...words]);
    assert.match(stderr, reason);
    assert.equal(code, 1);
  }
  assert.equal(await requested(), before);
  assert.equal(readdirSync(directory).includes('x.age'), false);
});

const VAULT_ID = 'ab'.repeat(11);

const MAC = Buffer.alloc(32).toString('base64');
const KEYSET = { id: 1, version: 1, rootVersion: 1, sealed: Buffer.alloc(300).toString('base64') };
/** The header of an empty backup. */
const HEADER = {
  format: BACKUP_FORMAT,
  leasehold: '0.1.0',
  created_at: '2026-03-27T12:00:00.000Z',
  store: 'sqlite',
  schema: 1,
  vault_id: VAULT_ID,
  log_end: null,
  key_slots: [],
  keys: { keyCheck: MAC, vaultId: VAULT_ID, keyset: KEYSET, slots: [] },
  vault: { keyCheck: MAC, vaultId: VAULT_ID, createdAt: 0, highWaterTime: 0, head: null, highestSeq: 0 },
  tables: {},
};
const newRecipient = async (): Promise<string> => identityToRecipient(await generateX25519Identity());

test('a header that would choose the place of the file, or another name, is rejected and nothing is written', async (t) => {
  const good = { ...HEADER, log_end: { seq: 7, hmac: MAC, mac: MAC } };
  const altered: readonly object[] = [
    { vault_id: 'x/../../evil' },
    { vault_id: '' },
    { created_at: '2026-03-27T12:00:00.000Z/../../evil' },
    { created_at: '2026-99-27T12:00:00.000Z' },
    { log_end: { ...good.log_end, seq: '1/../../../evil' } },
    { log_end: { ...good.log_end, seq: -1 } },
    { key_slots: [null] },
  ];
  let header: object = good;
  const hostile = createServer((request, response) => {
    request.resume();
    const writer = new BackupWriter();
    const first = writer.header(header as never);
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end(Buffer.concat([first, writer.end()]));
  });
  await new Promise<void>((resolve) => hostile.listen(0, '127.0.0.1', resolve));
  t.after(() => hostile.close());
  const address = `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`;
  const recipient = await newRecipient();
  const dir = join(temporaryDirectory(t), 'inner', 'backups');
  mkdirSync(dir, { recursive: true });
  const other = newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: 'lha_0123456789abcdef' });
  const take = () => other.leasehold(['backup', dir, '--recipient', recipient]);
  for (const alteration of altered) {
    header = { ...good, ...alteration };
    const { code, stderr } = await take();
    assert.match(stderr, /record 1 \(the header\): \w+.* (?:must be|is) /, JSON.stringify(alteration));
    assert.equal(code, 1);
  }
  assert.deepEqual(readdirSync(dir), []);
  header = good;
  assert.equal((await take()).code, 0);
  assert.deepEqual(readdirSync(dir), [`leasehold-${VAULT_ID}-20260327T120000Z-7.age`]);
});

/** The records of an empty backup. */
async function* emptyBackup(): AsyncGenerator<Uint8Array> {
  const writer = new BackupWriter();
  yield writer.header(HEADER as never);
  yield writer.end();
}

test('a backup that does not get its name leaves no file with the name', async (t) => {
  const dir = temporaryDirectory(t);
  const lock = { kind: 'recipients', recipients: [await newRecipient()] } as const;
  const { signal } = new AbortController();
  const unnamed = writeBackup(
    dir,
    () => {
      for (const name of readdirSync(dir)) rmSync(join(dir, name));
      return join(dir, 'vault.age');
    },
    emptyBackup(),
    lock,
    signal,
  );
  await assert.rejects(unnamed, { code: 'ENOENT' });
  assert.deepEqual(readdirSync(dir), []);
});

test('a backup gets its name on a file system without hard links too, and replaces no file', async (t) => {
  const dir = temporaryDirectory(t);
  const lock = { kind: 'recipients', recipients: [await newRecipient()] } as const;
  const { signal } = new AbortController();
  t.mock.method(fs, 'linkSync', () => {
    throw Object.assign(new Error('EPERM'), { code: 'EPERM', syscall: 'link' });
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const write = () => writeBackup(dir, () => join(dir, 'vault.age'), emptyBackup(), lock, signal);
  const { sizeBytes } = await write();
  await assert.rejects(write(), /vault\.age already exists/);
  assert.deepEqual(readdirSync(dir), ['vault.age']);
  assert.equal(fs.statSync(join(dir, 'vault.age')).size, sizeBytes);
});
