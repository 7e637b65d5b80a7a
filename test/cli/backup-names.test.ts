/** The name of a backup: a server cannot choose it, and a file has it only when it is complete. */
import assert from 'node:assert/strict';
import fs, { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { syncBuiltinESMExports } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { generateX25519Identity, identityToRecipient } from 'age-encryption';
import { writeBackup } from '../../src/backup/file.ts';
import { BACKUP_FORMAT, BackupWriter } from '../../src/backup/records.ts';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';

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
