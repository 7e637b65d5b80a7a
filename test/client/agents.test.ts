/** Logins of an agent: with a key file, a key in memory, or a custom signer, and their errors. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileSigner, keySigner, Leasehold, type Signer } from '../../src/client/leasehold.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { AGENT, keyFileOf, setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

const value = async (vault: Leasehold): Promise<string> =>
  (await vault.credentials.retrieve('prod/db/password')).value.reveal();

test('an agent logs in with a key file, key text, a Web Cryptography key, and a custom signer', async (t) => {
  const { service, between } = await throughProxy(t, shared);
  const file = keyFileOf(service);
  const pem = readFileSync(file, 'utf8');
  const der = Buffer.from(pem.replaceAll(/-----.*-----/g, ''), 'base64');
  const key = await crypto.subtle.importKey('pkcs8', der, 'Ed25519', false, ['sign']);
  const openssl: Signer = (nonce) => {
    const given = join(temporaryDirectory(t), 'nonce');
    writeFileSync(given, nonce);
    return execFileSync('openssl', ['pkeyutl', '-sign', '-rawin', '-inkey', file, '-in', given]);
  };
  for (const sign of [fileSigner(file), keySigner(pem), keySigner(`${pem}\n\n`), keySigner(key), openssl]) {
    const vault = new Leasehold({ address: between.address, agent: { name: AGENT, sign } });
    assert.equal(await value(vault), 'correct horse');
  }
  assert.equal(between.count('POST /auth/verify'), 5);
});

test('the key file is read at each login, so that a key can be replaced', async (t) => {
  const { service, admin, between } = await setScene(t);
  const file = join(temporaryDirectory(t), 'key.pem');
  const give = (): void => writeFileSync(file, readFileSync(keyFileOf(service)));
  give();
  const vault = new Leasehold({ address: between.address, agent: { name: AGENT, sign: fileSigner(file) } });
  assert.equal(await value(vault), 'correct horse');
  await admin.agents.deregister(AGENT);
  await admin.agents.register({ name: AGENT });
  await assert.rejects(value(vault), withCode('AUTH_FAILED', 401));
  give();
  assert.equal(await value(vault), 'correct horse');
  rmSync(file);
  await admin.agents.deregister(AGENT);
  await assert.rejects(value(vault), { ...withCode('BAD_KEY', null), message: /key file .* cannot be read/ });
});

test('an invalid or unsupported key is rejected, and no part of it is in the error', async (t) => {
  const { between } = await throughProxy(t, shared);
  const made = (algorithm: string): string =>
    execFileSync('openssl', ['genpkey', '-algorithm', algorithm], { encoding: 'utf8', stdio: 'pipe' });
  const secret = 'c2VjcmV0IG1hdGVyaWFs';
  const keys = {
    'PKCS#8 in PEM': [secret, ''],
    'is damaged': [`-----BEGIN OPENSSH PRIVATE KEY-----\n${secret}\n-----END OPENSSH PRIVATE KEY-----`],
    'not an Ed25519 key': [made('X25519'), `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----\n`],
  };
  for (const [said, texts] of Object.entries(keys)) {
    for (const text of texts) {
      const vault = new Leasehold({ address: between.address, agent: { name: AGENT, sign: keySigner(text) } });
      const error = await vault.logIn().catch((reason: unknown) => reason);
      assert.ok(error instanceof Error);
      assert.match(error.message, new RegExp(said));
      assert.equal(`${error.stack}${String(error.cause)}`.includes(secret), false);
    }
  }
  const pair = await crypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign', 'verify']);
  const vault = new Leasehold({ address: between.address, agent: { name: AGENT, sign: keySigner(pair.privateKey) } });
  await assert.rejects(vault.logIn(), { ...withCode('BAD_KEY', null), message: /cannot sign with Ed25519/ });
});

test('an error of a signer is passed on unchanged, and the next call invokes the signer again', async (t) => {
  const { service, between } = await throughProxy(t, shared);
  const real = fileSigner(keyFileOf(service));
  let asked = 0;
  const sign: Signer = (nonce) => {
    asked += 1;
    if (asked === 1) throw new RangeError('the token is not plugged in');
    return real(nonce);
  };
  const vault = new Leasehold({ address: between.address, agent: { name: AGENT, sign } });
  await assert.rejects(value(vault), new RangeError('the token is not plugged in'));
  assert.equal(await value(vault), 'correct horse');
  assert.equal(asked, 2);
});
