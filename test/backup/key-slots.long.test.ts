// A restore opens the vault with any of its key slots, as the server does, or with a passphrase.

import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import {
  newPassphraseParameters,
  passphraseSecret,
  slotPrivateKey,
  slotPublicKey,
} from '../../src/crypto/key-slots.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTransit, TRANSIT_TOKEN } from '../kit/key-services.ts';
import { startTestService } from '../kit/service.ts';
import { backUp, newPlace, restoreWith, wordsFor } from './fixture.ts';

const scope = { after };
const directory = temporaryDirectory(scope);
const privateFile = (name: string, text: string): string => {
  const file = join(directory, name);
  writeFileSync(file, `${text}\n`, { mode: 0o600 });
  return file;
};
const PASSPHRASE = 'correct horse battery';
const WITH_TRANSIT = {
  LEASEHOLD_TRANSIT_ADDRESS: await startTransit(scope),
  LEASEHOLD_TRANSIT_TOKEN_FILE: privateFile('token', TRANSIT_TOKEN),
};
const backup = await createVault();

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
  return file;
}

const LATIN1 = join(directory, 'latin1');
writeFileSync(LATIN1, Buffer.from('correct hörse', 'latin1'), { mode: 0o600 });
const passphraseIn = (file: string): string[] => ['--slot-passphrase-file', file];

for (const [how, flags, environment] of [
  ['the passphrase of a slot behind a byte order mark', passphraseIn(privateFile('marked', `\ufeff${PASSPHRASE}`)), {}],
  ['a slot that needs no person', [], WITH_TRANSIT],
] as const) {
  test(`a backup is restored with ${how}`, async (t) => {
    const words = [...wordsFor(t, backup, await newPlace(t, 'sqlite')), ...flags];
    const { code, told } = await restoreWith(words, 'yes', environment);
    assert.equal(code, 0, told.join('\n'));
  });
}

for (const [how, flags, exitCode, line] of [
  [
    'with another passphrase',
    passphraseIn(privateFile('another', 'another passphrase')),
    1,
    /^The passphrase opens no key slot of the vault in the backup\. Nothing was changed\.$/,
  ],
  [
    'without a person whom its slots need',
    [],
    1,
    /^No unattended key slot opens the vault in the backup: give --root-key-file or --slot-passphrase-file\. Key slot/,
  ],
  ['with two lines', passphraseIn(privateFile('several', `${PASSPHRASE}\nmore`)), 2, /several: must be one line/],
  ['with another encoding', passphraseIn(LATIN1), 2, /latin1 is not text in UTF-8\.$/],
  ['with a missing file', passphraseIn('/nonexistent'), 2, /^\/nonexistent cannot be read \(ENOENT\)\.$/],
] as const) {
  test(`a backup is not restored ${how}`, async (t) => {
    const { code, told } = await restoreWith([...wordsFor(t, backup, await newPlace(t, 'sqlite')), ...flags]);
    assert.equal(code, exitCode);
    assert.match(told.at(-1) ?? '', line);
  });
}
