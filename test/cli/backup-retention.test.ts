/** `leasehold backup` into a directory: which file it writes, and which ones it deletes. */
import assert from 'node:assert/strict';
import fs, { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { writeBackup } from '../../src/backup/file.ts';
import { BACKUP_FORMAT, BackupWriter } from '../../src/backup/records.ts';
import { backupName, deleteOld, listBackups, parseRetention } from '../../src/cli/backup/retention.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';

const VAULT_ID = 'ab'.repeat(11);
const DAY_MS = 86_400_000;

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

/** Writes what passes for a backup that was taken so many days before `now`. Returns its name. */
function writeBackupOf(dir: string, now: number, days: number, seq = 7, vault_id = VAULT_ID): string {
  const created_at = new Date(now - days * DAY_MS).toISOString();
  const name = backupName({ vault_id, log_end: { seq, hmac: '', mac: '' }, created_at } as never);
  writeFileSync(join(dir, name), 'age-encryption.org/v1\n');
  return name;
}

test('retention by number and by age keeps the newest, however old it is', (t) => {
  const dir = temporaryDirectory(t);
  const now = Date.parse('2026-03-27T12:00:00Z');
  const [newest = ''] = Array.from({ length: 10 }, (_, index) => writeBackupOf(dir, now, index + 1));
  const ages = (): number[] => listBackups(dir).map(({ takenAt }) => (now - takenAt) / DAY_MS);
  deleteOld(dir, newest, parseRetention('7d', '--keep'), now);
  assert.deepEqual(ages(), [1, 2, 3, 4, 5, 6, 7]);
  deleteOld(dir, newest, parseRetention('3', '--keep'), now);
  assert.deepEqual(ages(), [1, 2, 3]);
  deleteOld(dir, newest, parseRetention('1h', '--keep'), now);
  assert.deepEqual(ages(), [1]);
});

test('retention never deletes the backup that was just written, and first those that a wrong clock dated later', (t) => {
  const dir = temporaryDirectory(t);
  const now = Date.parse('2026-03-27T12:00:00Z');
  const [misdated, older, written] = [-200, 1, 0].map((days) => writeBackupOf(dir, now, days));
  assert.deepEqual(deleteOld(dir, written ?? '', parseRetention('2', '--keep'), now), [misdated]);
  assert.deepEqual(deleteOld(dir, written ?? '', parseRetention('1', '--keep'), now), [older]);
  assert.deepEqual(readdirSync(dir), [written]);
});

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

/** Lets a function of the file system fail, if the condition holds for its arguments. */
function failWith(
  t: TestContext,
  name: 'linkSync' | 'rmSync',
  code: string,
  condition: (path: string) => boolean,
): void {
  const original = fs[name] as (...given: unknown[]) => void;
  t.mock.method(fs, name, (path: string, ...others: unknown[]) => {
    if (condition(path)) throw Object.assign(new Error(code), { code, syscall: name, path });
    original(path, ...others);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

test('a schedule counts from the newest backup of its vault, and not from those of others', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const dir = temporaryDirectory(t);
  const foreign = writeBackupOf(dir, Date.now(), 0);
  const words = ['backup', dir, '--recipient', await newRecipient(), '--schedule', '1h'];
  const stop = new AbortController();
  // A command that waits for the next hour is stopped here.
  const timer = setTimeout(() => stop.abort(), 240_000);
  const { code, stderr } = await home.leasehold(words, { signal: stop.signal, onStdout: () => stop.abort() });
  clearTimeout(timer);
  assert.equal(code, 0, stderr);
  const own = readdirSync(dir).filter((name) => name !== foreign);
  assert.equal(own.length, 1);
  // The one that was taken is not an hour old.
  const { stdout } = await home.leasehold(words, { signal: AbortSignal.timeout(1000) });
  assert.equal(stdout, '');
  assert.deepEqual(readdirSync(dir).sort(), [foreign, ...own].sort());
});

test('older backups that cannot be deleted are reported, and the backup is not reported as failed', async (t) => {
  const service = await startTestService(t);
  const home = newHome(t, { LEASEHOLD_ADDR: service.address, LEASEHOLD_TOKEN: service.adminToken });
  const dir = temporaryDirectory(t);
  const words = ['backup', dir, '--recipient', await newRecipient(), '--keep', '1', '-o', 'json'];
  const first = JSON.parse((await home.leasehold(words)).stdout);
  const old = writeBackupOf(dir, Date.now(), 1, 7, first.vault_id);
  failWith(t, 'rmSync', 'EPERM', (path) => path.endsWith(old));
  const reason =
    /^leasehold: \S+-7\.age cannot be used \(EPERM\).*\nThe backup \S+\.age was taken, but not all older files /;
  const { code, stdout, stderr } = await home.leasehold(words);
  assert.match(stderr, reason);
  assert.equal(code, 2);
  const second = JSON.parse(stdout);
  assert.ok(fs.existsSync(second.file));
  for (const { file } of [first, second]) rmSync(file, { force: true });
  const stop = new AbortController();
  writeBackupOf(dir, Date.now(), 2, 6, first.vault_id);
  const scheduled = await home.leasehold([...words, '--schedule', '1h'], {
    signal: stop.signal,
    onStderr: (text) => /older files|No backup/.test(text) && stop.abort(),
  });
  assert.match(scheduled.stderr, reason);
  assert.doesNotMatch(scheduled.stderr, /No backup was taken/);
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
  failWith(t, 'linkSync', 'EPERM', () => true);
  const write = () => writeBackup(dir, () => join(dir, 'vault.age'), emptyBackup(), lock, signal);
  const { sizeBytes } = await write();
  await assert.rejects(write(), /vault\.age already exists/);
  assert.deepEqual(readdirSync(dir), ['vault.age']);
  assert.equal(fs.statSync(join(dir, 'vault.age')).size, sizeBytes);
});
