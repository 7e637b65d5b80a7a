// A vault that only an operator opens starts locked; `unlock` opens it, and `lock` closes it while the server runs.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import {
  newPassphraseParameters,
  passphraseSecret,
  slotPrivateKey,
  slotPublicKey,
} from '../../src/crypto/key-slots.ts';
import { formatShare, newShares, parseShare } from '../../src/crypto/shares.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';
import { executeSql } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { countOpen } from '../kit/open-files.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { assertNoStart, copyVault } from './vaults.ts';

const UNLOCK = '/api/v1/unlock';
const SLOTS = '/api/v1/key/slots';
const publicKeyOf = (secret: Uint8Array) => slotPublicKey(slotPrivateKey(secret));
const base64 = (secret: Uint8Array) => Buffer.from(secret).toString('base64');

/** A slot of a passphrase. Deriving its secret takes long, so most tests choose the secret themselves. */
async function addPassphrase(
  { admin }: TestService,
  secret: Uint8Array = randomBytes(32),
  parameters = newPassphraseParameters(),
): Promise<Uint8Array> {
  const slot = { name: 'words', kind: 'passphrase', public_key: publicKeyOf(secret), parameters };
  assert.equal((await admin.post(SLOTS, slot)).status, 201);
  return secret;
}

async function addShares({ admin }: TestService, count: number, threshold: number) {
  const { secret, group, digests, shares } = await newShares(count, threshold);
  const parameters = { group, threshold, shares: count, digests };
  const slot = { name: 'quorum', kind: 'shamir', public_key: publicKeyOf(secret), parameters };
  assert.equal((await admin.post(SLOTS, slot)).status, 201);
  return shares.map((share) => share.reveal());
}

/** Well-formed, of the same group and index, with other bytes. */
async function forgeShare(text: string, threshold: number): Promise<string> {
  const share = parseShare(text);
  assert.ok(share);
  return formatShare({ ...share, threshold, bytes: share.bytes.map((byte) => byte ^ 1) });
}

async function assertLocked({ admin, anonymous }: TestService): Promise<void> {
  const health = await anonymous.get('/api/v1/health');
  assert.deepEqual([health.status, health.body], [503, { data: { status: 'locked' } }]);
  assert.equal((await anonymous.get('/livez')).status, 200);
  assert.equal((await anonymous.get('/readyz')).status, 503);
  for (const path of [
    '/api/v1/credentials/a/b',
    '/api/v1/audit',
    SLOTS,
    '/openapi.json',
    '/nowhere',
    '/auth/session',
  ]) {
    const answer = await admin.get(path);
    assert.deepEqual([answer.status, answer.body.error?.code], [503, 'VAULT_LOCKED'], path);
  }
}

const readValue = async ({ admin }: TestService) => (await admin.get('/api/v1/credentials/a/b')).body.data?.value;
const unlock = ({ anonymous }: TestService, secret: string) => anonymous.post(UNLOCK, { secret });

test('without its root key file the vault starts locked, and a passphrase or shares unlock it', async (t) => {
  const dataDir = await copyVault(t);
  const first = await startTestService(t, [], dataDir);
  const parameters = newPassphraseParameters();
  const secret = await passphraseSecret(new Secret('correct horse battery'), parameters);
  assert.ok(secret);
  await addPassphrase(first, secret, parameters);
  const shares = await addShares(first, 5, 3);
  await first.stop();
  const keyFile = join(dataDir, 'root.key');
  renameSync(keyFile, join(dataDir, 'agents', 'elsewhere'));

  const service = await startTestService(t, [], dataDir);
  assert.match(service.warnings.join(), /The vault is locked\..*root key is missing.*leasehold unlock.*words, quorum/);
  await assertLocked(service);
  const attended = (await service.anonymous.get(UNLOCK)).body.data;
  assert.deepEqual(
    attended.map(({ name, kind }: { name: string; kind: string }) => [name, kind]),
    [
      ['file', 'file'],
      ['words', 'passphrase'],
      ['quorum', 'shamir'],
    ],
  );
  assert.equal((await unlock(service, base64(randomBytes(32)))).status, 400);
  assert.deepEqual(attended[1].parameters, parameters);
  await assertLocked(service);
  assert.deepEqual((await unlock(service, base64(secret))).body.data, {
    status: 'ok',
    shares_given: null,
    shares_needed: null,
  });
  assert.equal(await readValue(service), 'kept');
  assert.equal((await unlock(service, base64(secret))).body.error.message, 'The vault is not locked.');
  assert.equal((await service.anonymous.get(UNLOCK)).status, 400);

  assert.equal((await service.admin.post('/api/v1/lock', {})).status, 200);
  await assertLocked(service);
  const [one = '', two = '', three = '', four = ''] = shares;
  assert.deepEqual((await unlock(service, one)).body.data, { status: 'locked', shares_given: 1, shares_needed: 3 });
  assert.equal((await unlock(service, one)).body.data.shares_given, 1, 'the same share counts once');
  const mistyped = two.replace(/[A-Z]/, (letter) => (letter === 'A' ? 'B' : 'A'));
  assert.match((await unlock(service, mistyped)).body.error.message, /typing mistakes/);
  assert.equal((await unlock(service, four)).body.data.shares_given, 2);
  assert.deepEqual((await unlock(service, three)).body.data, { status: 'ok', shares_given: 3, shares_needed: 3 });
  assert.equal(await readValue(service), 'kept');
  const { data } = (await service.admin.get('/api/v1/audit?order=asc')).body;
  const events = data.map((entry: { event_type: string }) => entry.event_type);
  for (const event of ['key.slot_add', 'service.unlock', 'service.lock']) assert.ok(events.includes(event), event);
  assert.equal((await service.admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

/** A server that starts locked, after its vault got slots and lost its root key file. */
async function startLocked<T>(t: TestContext, add: (first: TestService) => Promise<T>, flags: readonly string[] = []) {
  const dataDir = await copyVault(t);
  const first = await startTestService(t, [], dataDir);
  const added = await add(first);
  await first.stop();
  rmSync(join(dataDir, 'root.key'));
  return { dataDir, added, service: await startTestService(t, flags, dataDir) };
}

test('shares of another group, or a share too few, never open', async (t) => {
  const { service, added: shares } = await startLocked(t, (first) => addShares(first, 3, 2));
  const others = await newShares(3, 2);
  assert.match((await unlock(service, others.shares[0]?.reveal() ?? '')).body.error.message, /another vault/);
  assert.equal((await unlock(service, shares[0] ?? '')).body.data.shares_given, 1);
  // A forged share, also one that names another threshold, is refused and takes nothing from the holders' shares.
  for (const threshold of [0, 1, 2]) {
    const forged = await forgeShare(shares[1] ?? '', threshold);
    assert.match((await unlock(service, forged)).body.error.message, /another vault/, `threshold ${threshold}`);
  }
  assert.equal((await unlock(service, shares[0] ?? '')).body.data.status, 'locked');
  await assertLocked(service);
});

test('an unlocking that fails at its last step leaves nothing open, and the next one succeeds', async (t) => {
  const tokenFile = join(temporaryDirectory(t), 'token');
  const stream = ['--log-stream', `file:${join(dirname(tokenFile), 'log')}`, '--log-stream-token-file', tokenFile];
  const { service, dataDir, added: secret } = await startLocked(t, (first) => addPassphrase(first), stream);
  const { status, body } = await unlock(service, base64(secret));
  assert.deepEqual([status, body.error?.code], [503, 'UNAVAILABLE']);
  assert.equal(countOpen(join(dataDir, 'leasehold.db')), 0);
  writeFileSync(tokenFile, 'a-token-of-the-receiver\n', { mode: 0o600 });
  assert.equal((await unlock(service, base64(secret))).body.data?.status, 'ok');
  assert.equal(await readValue(service), 'kept');
});

test('wrong secrets are limited', async (t) => {
  const { service, added: secret } = await startLocked(t, (first) => addPassphrase(first));
  const codes = [];
  for (let n = 0; n < 12; n++) codes.push((await unlock(service, base64(new Uint8Array(32).fill(n)))).status);
  assert.deepEqual(codes, [...new Array(10).fill(400), 429, 429]);
  assert.equal((await unlock(service, base64(secret))).status, 429);
});

test('a request through a proxy cannot unlock', async (t) => {
  const { service, added: secret } = await startLocked(t, (first) => addPassphrase(first));
  for (const name of ['x-forwarded-for', 'forwarded']) {
    const response = await fetch(`${service.address}${UNLOCK}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', [name]: '192.0.2.7' },
      body: JSON.stringify({ secret: base64(secret) }),
    });
    assert.equal(response.status, 403, name);
  }
  await assertLocked(service);
});

test('a slot row that was altered never opens, and the last slot stays', async (t) => {
  const dataDir = await copyVault(t);
  const first = await startTestService(t, [], dataDir);
  const secret = await addPassphrase(first);
  assert.match((await first.admin.delete(`${SLOTS}/nothing`)).body.error.code, /NOT_FOUND/);
  assert.equal((await first.admin.delete(`${SLOTS}/file`)).status, 204);
  const last = await first.admin.delete(`${SLOTS}/words`);
  assert.match(last.body.error.message, /the last key slot cannot be removed/);
  await first.stop();
  await executeSql(dataDir, "UPDATE key_slots SET name = 'other'");
  const service = await startTestService(t, [], dataDir);
  await assertLocked(service);
  await executeSql(dataDir, `UPDATE key_slots SET public_key = '${publicKeyOf(new Uint8Array(32).fill(7))}'`);
  assert.equal((await unlock(service, base64(secret))).status, 400);
  await assertLocked(service);
});

test('with the file slot alone a missing root key prevents the start', async (t) => {
  const dataDir = await copyVault(t);
  rmSync(join(dataDir, 'root.key'));
  await assertNoStart(t, dataDir, /The root key is missing/);
});
