// A migration and a restore open the vault with any of its key slots, as the service does, or with a passphrase.

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Secret } from '../../src/core/secret.ts';
import { slotPrivateKey, slotPublicKey } from '../../src/crypto/key-slots.ts';
import { newPassphraseParameters, passphraseSecret } from '../../src/crypto/passphrase.ts';
import { backUp, newPlace, restoreWith, wordsFor } from '../backup/fixture.ts';
import { newDatabase } from '../kit/database.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTransit, TRANSIT_TOKEN } from '../kit/key-services.ts';
import { startTestService } from '../kit/service.ts';
import { assertRejected, moveVault } from './migrations.ts';

const scope = { after };
const directory = temporaryDirectory(scope);
const privateFile = (name: string, text: string): string => {
  const file = join(directory, name);
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return file;
};
const PASSPHRASE = 'correct horse battery';
const WITH_PASSPHRASE = ['--slot-passphrase-file', privateFile('passphrase', PASSPHRASE)];
const WITH_ANOTHER = ['--slot-passphrase-file', privateFile('another', 'another passphrase')];
const WITH_TRANSIT = {
  LEASEHOLD_TRANSIT_ADDRESS: await startTransit(scope),
  LEASEHOLD_TRANSIT_TOKEN_FILE: privateFile('token', TRANSIT_TOKEN),
};
const { dataDir, backup } = await createVault();

/** A vault with a slot of a passphrase and one of Transit, whose root key file is elsewhere; and its backup. */
async function createVault() {
  const flags = ['--transit-address', WITH_TRANSIT.LEASEHOLD_TRANSIT_ADDRESS];
  const service = await startTestService(
    scope,
    [...flags, '--transit-token-file', WITH_TRANSIT.LEASEHOLD_TRANSIT_TOKEN_FILE],
    join(directory, 'data'),
  );
  const parameters = newPassphraseParameters();
  const secret = await passphraseSecret(new Secret(PASSPHRASE), parameters);
  assert.ok(secret);
  const words = { name: 'words', kind: 'passphrase', public_key: slotPublicKey(slotPrivateKey(secret)), parameters };
  for (const slot of [words, { name: 'bao', kind: 'transit', key: 'leasehold' }]) {
    assert.equal((await service.admin.post('/api/v1/key/slots', slot)).status, 201);
  }
  const file = await backUp(scope, service);
  await service.stop();
  renameSync(join(service.dataDir, 'root.key'), join(directory, 'root.key'));
  return { dataDir: service.dataDir, backup: file };
}

test('a vault is migrated with the passphrase of a slot', async (t) => {
  const { out } = await moveVault(dataDir, await newDatabase(t), WITH_PASSPHRASE);
  assert.match(out, /Keys were not copied: what opens the key slots stays where it is, and/);
});

test('a passphrase file is read as the command reads it that adds the slot', async (t) => {
  const withMark = ['--slot-passphrase-file', privateFile('marked', `\ufeff${PASSPHRASE}`)];
  await moveVault(dataDir, await newDatabase(t), withMark);
  const flags = ['--from', dataDir, '--to', 'postgres://a@127.0.0.1/b'];
  const several = ['--slot-passphrase-file', privateFile('several', `${PASSPHRASE}\nmore`)];
  await assertRejected([...flags, ...several], /several: must be one line/, 2);
  const latin1 = join(directory, 'latin1');
  writeFileSync(latin1, Buffer.from('correct hörse', 'latin1'), { mode: 0o600 });
  await assertRejected([...flags, '--slot-passphrase-file', latin1], /latin1 is not text in UTF-8\./, 2);
});

test('a vault is migrated with a slot that needs no person', async (t) => {
  await moveVault(dataDir, await newDatabase(t), [], WITH_TRANSIT);
});

test('a vault whose slots need a person is not migrated without one', async (t) => {
  const flags = ['--from', dataDir, '--to', await newDatabase(t)];
  await assertRejected(flags, /No key slot opens the vault without a person: give --slot-passphrase-file\. Key slot/);
});

test('a vault is not migrated with another passphrase', async (t) => {
  const flags = ['--from', dataDir, '--to', await newDatabase(t), ...WITH_ANOTHER];
  await assertRejected(flags, /The passphrase opens no key slot of the vault\. Nothing was changed\./);
});

test('a passphrase file that is missing is a usage error', async () => {
  const flags = ['--from', dataDir, '--to', 'postgres://a@127.0.0.1/b', '--slot-passphrase-file', '/nonexistent'];
  await assertRejected(flags, /\/nonexistent cannot be read \(ENOENT\)\./, 2);
});

test('a backup is restored with the passphrase of a slot', async (t) => {
  const { code, told } = await restoreWith([...wordsFor(t, backup, await newPlace(t, 'sqlite')), ...WITH_PASSPHRASE]);
  assert.equal(code, 0, told.join('\n'));
});

test('a backup is not restored with another passphrase', async (t) => {
  const { code, told } = await restoreWith([...wordsFor(t, backup, await newPlace(t, 'sqlite')), ...WITH_ANOTHER]);
  assert.deepEqual(
    [code, told.at(-1)],
    [1, 'The passphrase opens no key slot of the vault in the backup. Nothing was changed.'],
  );
});

test('a backup whose slots need a person is not restored without one', async (t) => {
  const { code, told } = await restoreWith(wordsFor(t, backup, await newPlace(t, 'sqlite')));
  assert.equal(code, 1);
  assert.match(
    told.at(-1) ?? '',
    /^No key slot opens the vault in the backup without a person: give --slot-passphrase/,
  );
});
