/** Logins of an agent: with a key file, a key in memory, or a custom signer, and their errors. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileSigner, keySigner, Leasehold, type Signer } from '../../src/client/leasehold.ts';
import { newHome } from '../kit/command.ts';
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
  const { service, admin, between } = await throughProxy(t, shared);
  const file = join(temporaryDirectory(t), 'key.pem');
  const register = (): Promise<unknown> => admin.agents.register({ name: 'moved' });
  const give = (): void => writeFileSync(file, readFileSync(keyFileOf(service, 'moved')));
  await register();
  give();
  const vault = new Leasehold({ address: between.address, agent: { name: 'moved', sign: fileSigner(file) } });
  await vault.readSession();
  await admin.agents.deregister('moved');
  await register();
  await assert.rejects(vault.readSession(), withCode('AUTH_FAILED', 401));
  give();
  await vault.readSession();
  rmSync(file);
  await admin.agents.deregister('moved');
  await assert.rejects(vault.readSession(), { ...withCode('BAD_KEY', null), message: /key file .* cannot be read/ });
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

function sshKey(directory: string, name: string, ...words: string[]): string {
  const file = join(directory, name);
  execFileSync('ssh-keygen', ['-q', '-f', file, ...(words.length === 0 ? ['-t', 'ed25519', '-N', ''] : words)]);
  return file;
}

test('an OpenSSH key registers an agent, and the agent logs in with it', async (t) => {
  const { service } = shared;
  const home = newHome(t, { LEASEHOLD_ADDR: service.address });
  const file = sshKey(home.path, 'bot');
  const environment = { LEASEHOLD_TOKEN: service.adminToken };
  const added = await home.leasehold(['agent', 'add', 'bot', '--public-key', file], { environment });
  assert.equal(added.code, 0, added.stderr);
  const who = await home.leasehold(['whoami', '--agent', 'bot', '--key-file', file, '--field', 'name']);
  assert.equal(who.stdout, 'agent:bot\n', who.stderr);
  const sign = keySigner(readFileSync(file, 'utf8'));
  const vault = new Leasehold({ address: service.address, agent: { name: 'bot', sign } });
  assert.equal((await vault.logIn()).agent_name, 'bot');
});

test('an unusable key is rejected with its reason and without its content', async (t) => {
  const directory = temporaryDirectory(t);
  const plain = readFileSync(sshKey(directory, 'plain'), 'utf8');
  const withPassphrase = sshKey(directory, 'locked', '-t', 'ed25519', '-N', 'a passphrase');
  const ecdsa = sshKey(directory, 'ecdsa', '-t', 'ecdsa', '-N', '');
  const lines = plain.split('\n');
  const cut = [...lines.slice(0, 3), ...lines.slice(-2)].join('\n');
  const sign = (text: string) => async () => keySigner(text)(new Uint8Array(32));
  for (const [text, rule] of [
    [readFileSync(withPassphrase, 'utf8'), /has a passphrase; use ssh-agent, or remove it with ssh-keygen -p/],
    [readFileSync(ecdsa, 'utf8'), /is not an Ed25519 key/],
    [cut, /is damaged/],
    [plain.replace('OPENSSH', 'RSA').replace('OPENSSH', 'RSA'), /must be PKCS#8 in PEM or an OpenSSH key/],
  ] as const) {
    await assert.rejects(sign(text), { code: 'BAD_KEY', message: rule });
  }
});
