/** `leasehold backup`: its file, its keys, verification, retention and the schedule. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption';
import { listBackups } from '../../src/cli/backup/retention.ts';
import { runSchedule } from '../../src/cli/backup/schedule.ts';
import { newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';

const scope = { after };
const service = await startTestService(scope);
const home = newHome(scope, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
const directory = temporaryDirectory(scope);
const at = (name: string): string => join(directory, name);
const identity = await generateX25519Identity();
const recipient = await identityToRecipient(identity);
async function listenOn(to: Scope, server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  to.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
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

test('a passphrase locks and opens; a wrong one, a short one and a damaged file are told', async () => {
  const file = at('locked.age');
  // The command reads what it has written with the passphrase.
  const { code, stderr } = await home.leasehold(['backup', file, '--passphrase-file', at('passphrase')]);
  assert.equal(code, 0, stderr);
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
    [[at('x.age'), '--recipient', recipient, '--keep', '7'], /--schedule and --keep need a directory/],
    [[directory, '--recipient', recipient, '--keep', 'some'], /must be a number of backups, such as 28, or an age/],
    [[directory, '--recipient', recipient, '--schedule', '5'], /must be a duration from 1m to 14d/],
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

test('a file that cannot be made ends the backup at the service, which takes the next one', async (t) => {
  const own = await startTestService(t);
  const large = 'v'.repeat(60_000);
  for (let at = 0; at < 300; at++) await own.admin.post('/api/v1/credentials', { path: `large/${at}`, value: large });
  const other = newHome(t, { LEASEHOLD_ADDR: own.address, LEASEHOLD_TOKEN: own.adminToken });
  const { code, stderr } = await other.leasehold(['backup', at('no/such.age'), '--recipient', recipient]);
  assert.match(stderr, /ENOENT/);
  assert.equal(code, 2);
  const ends = async () => (await own.admin.get('/api/v1/audit?event_type=service.backup_result')).body.data;
  const hasEnded = async (): Promise<boolean> => (await ends()).length > 0;
  await until(hasEnded, 60_000, () => 'the backup goes on at the service');
  const [end] = await ends();
  assert.deepEqual([end.result, end.reason.startsWith('incomplete')], ['error', true]);
  assert.equal((await other.leasehold(['backup', at('large.age'), '--recipient', recipient])).code, 0);
});

test('an agent is denied, and nothing is written', async (t) => {
  const { token } = await service.agent('reader', { '*': ['retrieve'] });
  const agent = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: token });
  const { code, stderr } = await agent.leasehold(['backup', at('agent.age'), '--recipient', recipient]);
  assert.equal(code, 2);
  assert.match(stderr, /Only the administrator may do this/);
  assert.deepEqual(
    readdirSync(directory).filter((name) => name === 'agent.age' || name.endsWith('.new')),
    [],
  );
});

test('in a directory the names say what they are, and only older backups of this vault are deleted', async (t) => {
  const dir = temporaryDirectory(t);
  const take = async () => {
    const words = ['backup', dir, '--recipient', recipient, '--keep', '1', '-o', 'json'];
    const { code, stdout, stderr } = await home.leasehold(words);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  const first = await take();
  const name = first.file.slice(dir.length + 1);
  assert.match(name, new RegExp(`^leasehold-${first.vault_id}-\\d{8}T\\d{6}Z-${first.through_entry}\\.age$`));
  const foreign = name.replace(first.vault_id, '0123456789abcdef_-0123');
  const empty = name.replace(/-\d+\.age$/, '-1.age');
  for (const other of ['notes.txt', `${name}.old`]) writeFileSync(join(dir, other), 'x');
  writeFileSync(join(dir, foreign), readFileSync(first.file));
  writeFileSync(join(dir, empty), '');
  const [killed, current] = [1, 2].map((digit) => `.${crypto.randomUUID().slice(0, -1)}${digit}.new`);
  for (const unfinished of [killed ?? '', current ?? '']) writeFileSync(join(dir, unfinished), 'x');
  const twoDaysAgo = new Date(Date.now() - 2 * 86_400_000);
  utimesSync(join(dir, killed ?? ''), twoDaysAgo, twoDaysAgo);
  const second = await take();
  const left = [current, second.file.slice(dir.length + 1), foreign, empty, 'notes.txt', `${name}.old`];
  assert.deepEqual(readdirSync(dir).sort(), left.sort());
});

test('a schedule counts from the newest backup, and tries again after a failure', async () => {
  const stop = new AbortController();
  const events: string[] = [];
  let takenAt = performance.now(); // which no step of the clock changes
  let taken: number | null = Date.now();
  await runSchedule(
    {
      intervalMs: 300,
      firstRetryMs: 20,
      lastTakenAt: async () => taken,
      async take() {
        events.push(performance.now() - takenAt >= 297 ? 'due' : 'early');
        if (events.length === 2) throw new Error('the service is away');
        takenAt = performance.now();
        taken = Date.now();
        if (events.length === 5) stop.abort();
      },
      onFailure: (error, retryMs) => events.push(`${(error as Error).message}, ${retryMs}`),
    },
    stop.signal,
  );
  assert.deepEqual(events, ['due', 'due', 'the service is away, 20', 'due', 'due']);
});

test('a scheduled backup that fails is reported with the time of the next try, and the command goes on', async (t) => {
  const stop = new AbortController();
  const away = createServer((_request, response) => {
    response.writeHead(503, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { code: 'UNAVAILABLE', message: 'The disk is full.' } }));
  });
  const address = await listenOn(t, away);
  const other = newHome(t, { LEASEHOLD_ADDR: address, LEASEHOLD_TOKEN: service.adminToken });
  const words = ['backup', temporaryDirectory(t), '--recipient', recipient, '--schedule', '6h'];
  const { code, stdout, stderr } = await other.leasehold(words, {
    signal: stop.signal,
    onStderr: (text) => text.includes('No backup was taken') && stop.abort(),
  });
  assert.deepEqual([code, stdout], [0, '']);
  assert.match(
    stderr,
    /^leasehold: The disk is full.*\n(?:.*\n)*\d{4}-\S+Z {2}No backup was taken\. The next try is in 60 s\.\n$/,
  );
});

test('a scheduled command takes the first backup immediately, and ends on a signal', async (t) => {
  const dir = temporaryDirectory(t);
  const stop = new AbortController();
  const { code, stdout } = await home.leasehold(['backup', dir, '--recipient', recipient, '--schedule', '1h'], {
    signal: stop.signal,
    onStdout: () => stop.abort(),
  });
  assert.equal(code, 0);
  assert.match(stdout, /^\d{4}-\S+Z {2}\S+\.age {2}\d+ bytes, through entry \d+\n$/);
  assert.equal(listBackups(dir).length, 1);
});
