// Restores that are rejected, each with one line, and before anything is created.

import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { generateX25519Identity } from 'age-encryption';
import { encrypt } from '../../src/backup/encryption.ts';
import { verifyBackup } from '../../src/backup/file.ts';
import { BACKUP_FORMAT, BackupWriter } from '../../src/backup/records.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { scaled } from '../kit/scale.ts';
import {
  countRows,
  identityFile,
  newBackup,
  newPlace,
  OPENER,
  RECIPIENT,
  restoreRequest,
  restoreWith,
  startAt,
  wordsFor,
} from './fixture.ts';

const scope = { after };
const puts = Array.from({ length: 30 }, (_, n) => [`prod/${n}`, `value ${n}`] as const);
const { source, file } = await newBackup(scope, puts);

/** Asserts that the restore fails with that line, and that nothing was created. */
async function assertRefused(words: readonly string[], reason: RegExp, code = 1): Promise<void> {
  const dataDir = words[words.indexOf('--data-dir') + 1] ?? '';
  const before = existsSync(dataDir) ? readdirSync(dataDir) : null;
  const { code: found, out, told } = await restoreWith(words);
  assert.match(told.at(-1) ?? '', reason);
  assert.equal((told.at(-1) ?? '').includes('\n'), false);
  assert.deepEqual([found, out], [code, '']);
  assert.deepEqual(existsSync(dataDir) ? readdirSync(dataDir) : null, before, 'something was created');
}

/** A copy of the backup, altered. */
function altered(alter: (copy: string) => void): string {
  const copy = join(temporaryDirectory(scope), 'altered.age');
  copyFileSync(file, copy);
  alter(copy);
  return copy;
}

/** A file with these records, encrypted for the tests. */
async function encrypted(records: readonly Uint8Array[]): Promise<string> {
  const made = join(temporaryDirectory(scope), 'made.age');
  async function* all() {
    yield* records;
  }
  const { bytes } = await encrypt(all(), { kind: 'recipients', recipients: [RECIPIENT] });
  writeFileSync(made, Buffer.from(await new Response(bytes).arrayBuffer()));
  return made;
}

test('another identity, a passphrase for recipients, and files that are no backup', async (t) => {
  const place = await newPlace(t, 'sqlite');
  const words = (backup: string, identities = identityFile(t)): string[] => [
    backup,
    '--data-dir',
    place.dataDir,
    '--root-key-file',
    join(source.dataDir, 'root.key'),
    '--identity-file',
    identities,
  ];
  await assertRefused(words(file, identityFile(t, await generateX25519Identity())), /None of the identities opens/);
  const passphrase = join(temporaryDirectory(t), 'passphrase');
  writeFileSync(passphrase, 'a long passphrase\n');
  const withPassphrase = [file, '--data-dir', place.dataDir, '--passphrase-file', passphrase];
  await assertRefused(withPassphrase, /is encrypted to recipients\. Give --identity-file/);
  await assertRefused(words(passphrase), /is not a backup, or its beginning is damaged/);
  await assertRefused(words(temporaryDirectory(t)), /is not a file/);
  await assertRefused(words(join(place.dataDir, 'none')), /cannot be read \(ENOENT\)/);
  await assertRefused([file, '--data-dir', place.dataDir], /Give --identity-file or --passphrase-file/, 2);
});

test('files with secrets that other users may read are told', (t) => {
  const files = ['identity', 'passphrase', 'slot'].map((name) => {
    const path = join(temporaryDirectory(t), name);
    writeFileSync(path, name === 'identity' ? readFileSync(identityFile(t)) : 'a long passphrase');
    chmodSync(path, 0o644);
    return path;
  });
  const [identities, passphrase, slot] = files;
  const warningsOf = (...flags: string[]): string[] => {
    const warnings: string[] = [];
    restoreRequest([file, '--data-dir', source.dataDir, ...flags], {}, (line) => void warnings.push(line));
    return warnings;
  };
  const warningOf = (path = ''): string => `Other users may read ${path}. Run chmod 600 on it.`;
  assert.deepEqual(warningsOf('--identity-file', identities ?? '', '--slot-passphrase-file', slot ?? ''), [
    warningOf(identities),
    warningOf(slot),
  ]);
  assert.deepEqual(warningsOf('--passphrase-file', passphrase ?? ''), [warningOf(passphrase)]);
});

test('a truncated file, trailing bytes, and a newer format', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const size = readFileSync(file).length;
  for (const length of [size - 1, Math.floor(size / 2), 300]) {
    const cut = altered((copy) => truncateSync(copy, length));
    await assertRefused(wordsFor(t, cut, place), /is damaged|is not a backup|None of the identities/);
  }
  const longer = altered((copy) => appendFileSync(copy, 'x'));
  await assertRefused(wordsFor(t, longer, place), /is damaged: it does not authenticate/);
  const newer = await encrypted([Buffer.from('{"format":"leasehold-backup-v2"}\n')]);
  await assertRefused(
    wordsFor(t, newer, place),
    /format leasehold-backup-v2, this Leasehold knows leasehold-backup-v1/,
  );
  const other = await encrypted([Buffer.from('{"format":"something"}\n')]);
  await assertRefused(wordsFor(t, other, place), /is not a backup of Leasehold/);
});

test('records that authenticate and are wrong: without an end, after it, with other rows, of a newer schema', async (t) => {
  const place = await newPlace(t, 'sqlite', source.dataDir);
  const { header } = await verifyBackup(file, OPENER);
  const writer = new BackupWriter();
  const first = writer.header({ ...header, format: BACKUP_FORMAT });
  const hash = Buffer.alloc(32, 'hash').toString('base64');
  const other = Buffer.alloc(32, 'hush').toString('base64');
  const rows = writer.rows('sessions', [[hash, crypto.randomUUID(), 1, 2, null, hash]]);
  const end = writer.end();
  const refused = async (records: readonly Uint8Array[], reason: RegExp) =>
    assertRefused(wordsFor(t, await encrypted(records), place), reason);
  await refused([first, rows], /its end is missing/);
  await refused([first, rows, end, end], /it continues after its end/);
  await refused([first, end], /it has other rows than its end says/);
  await refused([first, Buffer.from(rows.toString().replace(hash, other)), end], /its digest differs/);
  await refused(
    [first, Buffer.from('{"table":"none","rows":[]}\n')],
    /record 2 has rows of a table that is unknown or out of order/,
  );
  const object = '{"toString":1,"valueOf":1}';
  await refused(
    [first, Buffer.from(`{"table":${object},"rows":[]}\n`)],
    /record 2 has rows of a table that is unknown or out of order/,
  );
  const oddEnd = end.toString().replace(/"sha256":"[^"]*"/, `"sha256":${object}`);
  await refused([first, rows, Buffer.from(oddEnd)], /record 3 \(the end\): sha256: must be a string/);
  await refused([first, Buffer.from('not JSON\n')], /record 2 is not JSON/);
  const ids = ['01890000-0000-7000-8000-000000000001', '01890000-0000-7000-8000-000000000002'];
  const agentsNamed = (...names: string[]) =>
    new BackupWriter().rows(
      'agents',
      names.map((name, at) => [ids[at] ?? '', name, '', hash, 1, null, null, null, '["admin"]', hash]),
    );
  await refused([first, agentsNamed('A', 'a')], /record 2, row 2 of agents, name is that of another row/);
  await refused([first, agentsNamed('a', 'b')], /its end is missing/);
  await refused([rows], /is not a backup of Leasehold/);
  const newer = new BackupWriter();
  await refused(
    [newer.header({ ...header, schema: 99 }), newer.end()],
    /has schema 99, this Leasehold knows up to \d+/,
  );
});

test('another root key, a missing one, and a target that is not empty', async (t) => {
  const other = await newPlace(t, 'sqlite');
  const stranger = await startAt(t, other);
  await stranger.stop();
  const place = await newPlace(t, 'sqlite', other.dataDir);
  await assertRefused(wordsFor(t, file, place), /is not the root key of this vault/);
  const bare = await newPlace(t, 'sqlite');
  await assertRefused(wordsFor(t, file, bare), /The root key is missing/);
  const key = ['--root-key-file', join(source.dataDir, 'root.key')];
  const before = readFileSync(join(other.dataDir, 'leasehold.db'));
  await assertRefused([...wordsFor(t, file, other), ...key], /leasehold\.db exists\. Nothing was changed/);
  assert.deepEqual(readFileSync(join(other.dataDir, 'leasehold.db')), before);
  await assertRefused([...wordsFor(t, file, source), ...key], /Another Leasehold runs on/);
});

test('a database that is not empty keeps its rows', async (t) => {
  const place = await newPlace(t, 'postgres', source.dataDir);
  const node = await startAt(t, place);
  await node.stop();
  await assertRefused(wordsFor(t, file, place), /is not empty\. Nothing was changed/);
  const url = readFileSync(place.flags[1] ?? '', 'utf8').trim();
  assert.equal(await countRows(url, 'credentials'), 0);
});

const seed = newSeed();

test(`no flipped bit and no truncation goes unnoticed (SEED=${seed})`, async () => {
  const dice = new Dice(seed);
  const bytes = readFileSync(file);
  const damaged = join(temporaryDirectory(scope), 'damaged.age');
  for (let round = 0; round < scaled(40, 1000); round++) {
    const copy = Buffer.from(bytes);
    // The header is short, so that half of the flips are in it.
    const at = dice.below(round % 2 === 0 ? 400 : copy.length);
    copy[at] = (copy[at] ?? 0) ^ (1 << dice.below(8));
    writeFileSync(damaged, round % 10 === 9 ? bytes.subarray(0, at) : copy);
    await assert.rejects(verifyBackup(damaged, OPENER), { name: 'BackupError' }, `byte ${at} in round ${round}`);
  }
  assert.equal((await verifyBackup(file, OPENER)).totals.rows['credentials'], 30);
});
