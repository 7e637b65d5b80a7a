// The kinds of unattended slots.

import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { awsKmsSlots } from '../../src/server/slots/aws-kms.ts';
import { SlotKindError, systemdSlots } from '../../src/server/slots/slot-kind.ts';
import { transitSlots } from '../../src/server/slots/transit.ts';
import type { VaultId } from '../../src/vault/keys/keyset.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { AWS_CREDENTIALS, startKms, startTransit, TRANSIT_TOKEN, useAwsEnvironment } from '../kit/key-services.ts';
import { startTestService } from '../kit/service.ts';
import { assertNoStart, copyVault } from './vaults.ts';

const VAULT = 'the vault' as VaultId;
const OTHER = 'another vault' as VaultId;

test('KMS opens its slot for the same vault only, with a signature that it checks', async (t) => {
  useAwsEnvironment(t);
  const kms = awsKmsSlots({ endpoint: await startKms(t) });
  const { secret, parameters } = await kms.create('alias/leasehold', VAULT);
  assert.equal(secret.length, 32);
  assert.deepEqual(await kms.open(parameters, VAULT), Buffer.from(secret));
  await assert.rejects(
    kms.open(parameters, OTHER),
    new SlotKindError('AWS KMS returned InvalidCiphertextException for Decrypt'),
  );
  await assert.rejects(kms.create('alias/other', VAULT), /NotFoundException/);
  await assert.rejects(kms.create('https://evil.example', VAULT), /must be the id, ARN or alias/);
});

test('KMS rejects another secret key and a clock that is off', async (t) => {
  useAwsEnvironment(t, { ...AWS_CREDENTIALS, AWS_SECRET_ACCESS_KEY: 'wrong' });
  const kms = awsKmsSlots({ endpoint: await startKms(t) });
  await assert.rejects(kms.create('alias/leasehold', VAULT), /SignatureDoesNotMatch/);
  useAwsEnvironment(t);
  const late = awsKmsSlots({ endpoint: await startKms(t, { clockMs: 10 * 60_000 }) });
  await assert.rejects(late.create('alias/leasehold', VAULT), /RequestExpired/);
});

test('Transit opens its slot for the same vault only, with its token', async (t) => {
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, `${TRANSIT_TOKEN}\n`);
  const options = { address: await startTransit(t), tokenFile, caFile: null, mount: 'transit' };
  const transit = transitSlots(options);
  const { secret, parameters } = await transit.create('leasehold', VAULT);
  assert.deepEqual(await transit.open(parameters, VAULT), Buffer.from(secret));
  await assert.rejects(transit.open(parameters, OTHER), new SlotKindError('Transit returned 400 for decrypt'));
  await assert.rejects(transit.open({ ...parameters, key: '../../sys/seal' }, VAULT), /key: must name the Transit key/);
  writeFileSync(tokenFile, 'another');
  await assert.rejects(transit.open(parameters, VAULT), new SlotKindError('Transit returned 403 for decrypt'));
  await assert.rejects(transitSlots({ ...options, address: null }).create('leasehold', VAULT), /is not configured/);
});

test('a systemd credential opens its slot, and only a file of its directory', async (t) => {
  const directory = temporaryDirectory(t);
  const systemd = systemdSlots(directory);
  writeFileSync(join(directory, 'leasehold'), `${Buffer.alloc(32, 4).toString('base64')}\n`);
  const { secret, parameters } = await systemd.create('leasehold', VAULT);
  assert.deepEqual(await systemd.open(parameters, VAULT), secret);
  await assert.rejects(systemd.create('../leasehold', VAULT), /must name the credential/);
  await assert.rejects(systemd.create('missing', VAULT), /cannot be read \(ENOENT\)/);
  await assert.rejects(systemdSlots(undefined).open(parameters, VAULT), /CREDENTIALS_DIRECTORY is not set/);
});

test('the server starts with Transit alone, and continues when it cannot be reached', async (t) => {
  const dataDir = await copyVault(t);
  const tokenFile = join(temporaryDirectory(t), 'token');
  writeFileSync(tokenFile, TRANSIT_TOKEN, { mode: 0o600 });
  const scope = { cleanUps: [] as (() => unknown)[], after: (work: () => unknown) => void scope.cleanUps.push(work) };
  const flags = ['--transit-token-file', tokenFile, '--transit-address', await startTransit(scope)];
  const first = await startTestService(t, flags, dataDir);
  const slot = { name: 'bao', kind: 'transit', key: 'leasehold' };
  assert.equal((await first.admin.post('/api/v1/key/slots', slot)).status, 201);
  assert.equal((await first.admin.delete('/api/v1/key/slots/file')).status, 204);
  await first.stop();
  rmSync(join(dataDir, 'root.key'));
  const service = await startTestService(t, flags, dataDir);
  for (const cleanUp of scope.cleanUps) await cleanUp();
  const read = await service.admin.get('/api/v1/credentials/a/b');
  assert.equal(read.body.data?.value, 'kept');
  assert.equal((await service.admin.post('/api/v1/key/rotate', { key: 'root' })).status, 200);
  const tested = (await service.admin.post('/api/v1/key/slots/bao/test', {})).body.data;
  assert.deepEqual([tested.opens, /cannot be reached/.test(tested.problem)], [false, true]);
  await service.stop();
  await assertNoStart(t, dataDir, /No key slot opens the vault\. Key slot bao: Transit cannot be reached/, flags);
});

test('a root key that was lost while the server runs opens no slot, and a new slot writes another file', async (t) => {
  const dataDir = await copyVault(t);
  const service = await startTestService(t, [], dataDir);
  const testFile = async () => (await service.admin.post('/api/v1/key/slots/file/test', {})).body.data;
  assert.equal((await testFile()).opens, true);
  rmSync(join(dataDir, 'root.key'));
  const { opens, problem } = await testFile();
  assert.deepEqual([opens, /^the root key is missing: /.test(problem)], [false, true]);
  assert.equal((await service.admin.post('/api/v1/key/slots', { name: 'next', kind: 'file' })).status, 201);
  assert.equal((await testFile()).problem, 'the secret is not that of the slot');
  await service.stop();
  const again = await startTestService(t, [], dataDir);
  assert.equal((await again.admin.get('/api/v1/credentials/a/b')).body.data?.value, 'kept');
});
