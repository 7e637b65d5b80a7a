// A key slot that does not open is not added, and at startup another slot opens the vault.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { slotPrivateKey, slotPublicKey } from '../../src/crypto/key-slots.ts';
import { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { openUnattended } from '../../src/server/open-keys.ts';
import { slotSecretsOf } from '../../src/server/slots/slot-secrets.ts';
import { transitSlots } from '../../src/server/slots/transit.ts';
import type { KeySlot, SlotKind, StoredKeys, VaultId } from '../../src/vault/keys/keyset.ts';
import { makeCertificate } from '../kit/certificate.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import {
  AWS_CREDENTIALS,
  serve,
  startKms,
  startTransit,
  TRANSIT_TOKEN,
  useAwsEnvironment,
} from '../kit/key-services.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { copyVault } from './vaults.ts';

const SLOTS = '/api/v1/key/slots';
const VAULT = 'the vault' as VaultId;
const scope = { after };
const directory = temporaryDirectory(scope);
const tokenFile = join(directory, 'token');
writeFileSync(tokenFile, TRANSIT_TOKEN, { mode: 0o600 });
const configurationWith = (changes: object) => ({
  dataDir: directory,
  rootKeyFile: null,
  credentialsDirectory: undefined,
  transit: { address: null, tokenFile, caFile: null, mount: 'transit' },
  awsKms: { endpoint: null },
  ...changes,
});
const NO_FILE = { path: join(directory, 'root.key'), secret: null };

test('a slot whose service encrypts and does not decrypt is not added', async (t) => {
  const address = await startTransit(t, { mayDecrypt: false });
  const flags = ['--transit-token-file', tokenFile, '--transit-address', address];
  const { admin } = await startTestService(t, flags);
  const added = await admin.post(SLOTS, { name: 'bao', kind: 'transit', key: 'leasehold' });
  assert.match(
    assertRejected(added, 'INVALID_REQUEST'),
    /was encrypted but cannot be decrypted: Transit returned 403 for decrypt\. Give the server the permission/,
  );
  assert.equal((await admin.get(SLOTS)).body.data.length, 1);
  useAwsEnvironment(t);
  const awsKms = { endpoint: await startKms(t, { mayDecrypt: false }) };
  await assert.rejects(
    slotSecretsOf(configurationWith({ awsKms }), NO_FILE).create('aws-kms', 'alias/leasehold', VAULT),
    /cannot be decrypted: AWS KMS returned AccessDeniedException for Decrypt/,
  );
});

test('a slot whose service returns a value that cannot be stored is not added', async (t) => {
  const NOT_STORED = {
    code: 'INVALID_REQUEST',
    message: /key service returned a value that cannot be stored\. parameters: must have values that are well-formed/,
  };
  const made = { ciphertext: '', calls: 0 };
  const address = await serve(t, () => {
    made.calls += 1;
    return { status: 200, body: { data: made } };
  });
  const transit = { address, tokenFile, caFile: null, mount: 'transit' };
  const secrets = slotSecretsOf(configurationWith({ transit }), NO_FILE);
  for (const ciphertext of ['x'.repeat(8193), 'vault:v1:\u0000', 'vault:v1:\ud800']) {
    made.ciphertext = ciphertext;
    await assert.rejects(secrets.create('transit', 'leasehold', VAULT), NOT_STORED);
  }
  // Nothing was decrypted.
  assert.equal(made.calls, 3);
  useAwsEnvironment(t);
  const CiphertextBlob = Buffer.alloc(6145).toString('base64');
  const endpoint = await serve(t, () => ({ status: 200, body: { CiphertextBlob } }));
  const kms = slotSecretsOf(configurationWith({ awsKms: { endpoint } }), NO_FILE);
  await assert.rejects(kms.create('aws-kms', 'alias/leasehold', VAULT), NOT_STORED);
});

for (const [name, environment] of [
  ['of two words', { ...AWS_CREDENTIALS, AWS_REGION: 'us east' }],
  ['with a path', { ...AWS_CREDENTIALS, AWS_REGION: 'x/../y' }],
] as const) {
  test(`an AWS region ${name} is a problem of its slot`, async (t) => {
    useAwsEnvironment(t, environment);
    const secrets = slotSecretsOf(configurationWith({}), NO_FILE);
    const slot = { kind: 'aws-kms', parameters: { key: 'alias/leasehold', ciphertext: 'AAAA' } } as const;
    assert.deepEqual(await secrets.open(slot, VAULT), {
      problem: 'the AWS region is not valid: set AWS_REGION to a name such as eu-west-1',
    });
  });
}

test('a region, a token file and a root key file that cannot be used leave the next slot to open the vault', async (t) => {
  useAwsEnvironment(t, { ...AWS_CREDENTIALS, AWS_REGION: 'us east' });
  const file = join(temporaryDirectory(t), 'root.key');
  symlinkSync(file, file);
  const credentials = temporaryDirectory(t);
  const secret = new Uint8Array(32).fill(9);
  writeFileSync(join(credentials, 'leasehold'), Buffer.from(secret).toString('base64'));
  const slotOf = (kind: SlotKind, parameters: KeySlot['parameters'], own: Uint8Array): KeySlot => ({
    id: kind as string as KeySlot['id'],
    name: kind as string as KeySlot['name'],
    kind,
    parameters,
    publicKey: slotPublicKey(slotPrivateKey(own)),
    createdAt: 0,
  });
  const lost = new Uint8Array(32).fill(1);
  const keys = VaultKeys.create(0, new Uint8Array(32).fill(2));
  const initial = keys.initial([
    slotOf('aws-kms', { key: 'alias/leasehold', ciphertext: 'AAAA' }, lost),
    slotOf('file', {}, lost),
    slotOf('transit', { key: 'leasehold', ciphertext: 'AAAA' }, lost),
    slotOf('systemd', { credential: 'leasehold' }, secret),
  ]);
  const stored: StoredKeys = { ...initial, keyCheck: keys.checkValue };
  const configuration = configurationWith({
    rootKeyFile: file,
    credentialsDirectory: credentials,
    transit: { address: 'http://127.0.0.1:9', tokenFile: '/nonexistent', caFile: null, mount: 'transit' },
  });
  const found = { path: file, secret: null, problem: `${file} cannot be read: ELOOP.` };
  const opened = await openUnattended(stored, found, slotSecretsOf(configuration, found));
  assert.ok('keys' in opened);
  const without = { ...configuration, credentialsDirectory: undefined };
  const line =
    /^No key slot opens the vault\. Key slot aws-kms: the AWS region .* Key slot file: \S+ cannot be read: .*ELOOP.* Key slot transit: .*\(ENOENT\).* Key slot systemd: [^.\n]*\.$/;
  await assert.rejects(openUnattended(stored, found, slotSecretsOf(without, found)), { message: line });
});

test('the server starts with another slot if its root key file is a link to itself', async (t) => {
  const [dataDir, flags] = [
    await copyVault(t),
    ['--transit-token-file', tokenFile, '--transit-address', await startTransit(t)],
  ];
  const first = await startTestService(t, flags, dataDir);
  assert.equal((await first.admin.post(SLOTS, { name: 'bao', kind: 'transit', key: 'leasehold' })).status, 201);
  await first.stop();
  const link = join(temporaryDirectory(t), 'root.key');
  symlinkSync(link, link);
  const again = await startTestService(t, [...flags, '--root-key-file', link], dataDir);
  assert.equal((await again.admin.get('/api/v1/credentials/a/b')).body.data?.value, 'kept');
});

test('a root key file that cannot be written is an error of the request', async (t) => {
  const place = join(temporaryDirectory(t), 'keys');
  mkdirSync(place);
  const { admin } = await startTestService(t, ['--root-key-file', join(place, 'root.key')]);
  rmSync(place, { recursive: true });
  const added = await admin.post(SLOTS, { name: 'next', kind: 'file' });
  assert.match(
    assertRejected(added, 'INVALID_REQUEST'),
    /^the root key file cannot be read or written \(ENOENT\): .*root\.key$/,
  );
});

test('a file of Transit that cannot be used is named, and is not a failure to reach it', async (t) => {
  const { certFile } = makeCertificate(t);
  const [empty, lines, missing] = ['empty', 'lines', 'missing'].map((name) => join(directory, name));
  assert.ok(empty && lines && missing);
  writeFileSync(empty, '\n');
  writeFileSync(lines, 's.one\ns.two\n');
  const options = { address: await startTransit(t), tokenFile, caFile: certFile, mount: 'transit' };
  await transitSlots(options).create('leasehold', VAULT);
  const damaged = join(directory, 'damaged');
  writeFileSync(damaged, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  const rejects = async (changes: object, message: string) =>
    assert.rejects(transitSlots({ ...options, ...changes }).create('leasehold', VAULT), { message });
  await rejects({ tokenFile: missing }, `the token file of Transit cannot be read (ENOENT): ${missing}`);
  await rejects({ caFile: missing }, `the CA file of Transit cannot be read (ENOENT): ${missing}`);
  for (const file of [empty, lines])
    await rejects({ tokenFile: file }, `the token file of Transit must contain one token on one line: ${file}`);
  for (const file of [empty, tokenFile, damaged])
    await rejects({ caFile: file }, `the CA file of Transit must contain certificates in PEM: ${file}`);
});

test("without AWS's SDK the problem of the slot is how to install it", () => {
  const program = `
    import { registerHooks } from 'node:module';
    registerHooks({
      resolve(specifier, context, next) {
        if (!specifier.startsWith('@aws-sdk/')) return next(specifier, context);
        throw Object.assign(new Error('missing'), { code: 'ERR_MODULE_NOT_FOUND' });
      },
    });
    process.env.AWS_REGION = 'eu-west-1';
    const { awsKmsSlots } = await import(process.argv[1]);
    await awsKmsSlots({ endpoint: null }).create('alias/leasehold', 'v').catch((error) => console.log(error.message));`;
  const path = join(import.meta.dirname, '../../src/server/slots/aws-kms.ts');
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', program, path], {
    encoding: 'utf8',
  });
  assert.match(printed, /^AWS KMS needs AWS's SDK, which is not installed: run npm install --include=optional/);
});
