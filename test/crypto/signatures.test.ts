// Ed25519: the vectors of RFC 8032, the keys that must be rejected, and generated keys used with OpenSSL. Signatures of
// webhooks, and the semaphore before work that would occupy every thread.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, randomBytes, sign } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PublicKey } from '../../src/core/names.ts';
import {
  DUMMY_PUBLIC_KEY,
  generateAgentKeys,
  isSignatureValid,
  parsePublicKey,
  parseWebhookSecret,
  Semaphore,
  webhookSignature,
} from '../../src/crypto/signatures.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { flipped } from './vectors.ts';

const hex = (text: string): Buffer => Buffer.from(text, 'hex');
const parse = (bytes: Uint8Array): PublicKey => parsePublicKey(Buffer.from(bytes).toString('base64'));
const refusal = { name: 'ApiError', code: 'INVALID_REQUEST', message: /^public_key: / };

// SOURCE: RFC 8032, section 7.1: public key, message, signature.
const RFC_8032: readonly (readonly [name: string, publicKey: string, message: string, signature: string])[] = [
  [
    'TEST 1',
    'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    '',
    'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  ],
  [
    'TEST 2',
    '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    '72',
    '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  ],
  [
    'TEST 3',
    'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    'af82',
    '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  ],
  [
    'TEST SHA(abc)',
    'ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf',
    'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
    'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
  ],
];

for (const [name, publicKey, message, signature] of RFC_8032) {
  test(`RFC 8032, ${name}: the signature is valid, and every altered one is not`, async () => {
    const key = parse(hex(publicKey));
    assert.equal(await isSignatureValid(key, hex(message), hex(signature)), true);
    assert.equal(await isSignatureValid(key, hex(`${message}00`), hex(signature)), false);
    const verdicts = await Promise.all(
      [...flipped(hex(signature))].map(({ altered }) => isSignatureValid(key, hex(message), altered)),
    );
    assert.deepEqual(new Set(verdicts), new Set([false]));
  });
}

// SOURCE: eprint 2020/1244, table 1: the points of order 1, 2, 4 and 8 in every encoding that decoders take.
const SMALL_ORDER = [
  '0100000000000000000000000000000000000000000000000000000000000000',
  '0100000000000000000000000000000000000000000000000000000000000080',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  '0000000000000000000000000000000000000000000000000000000000000000',
  '0000000000000000000000000000000000000000000000000000000000000080',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f',
  'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
];

test('the list of small-order encodings has 14 items', () => assert.equal(new Set(SMALL_ORDER).size, 14));

for (const point of SMALL_ORDER) {
  test(`a public key of small order is rejected: ${point.slice(0, 4)}…${point.slice(-2)}`, () => {
    assert.throws(() => parse(hex(point)), refusal);
  });
}

test('a public key whose coordinate is not below the prime is rejected, whatever its sign bit', () => {
  for (let low = 0xed; low <= 0xff; low++) {
    for (const high of [0x7f, 0xff]) {
      const key = Buffer.alloc(32, 0xff);
      key[0] = low;
      key[31] = high;
      assert.throws(() => parse(key), refusal, `${low.toString(16)}, ${high.toString(16)}`);
    }
  }
});

test('a public key that is not a point of the curve is rejected, and its neighbours are not', () => {
  // Found by decoding as in RFC 8032, section 5.1.3, which computes the root itself.
  const off = [2, 7, 8, 11, 12, 13, 17, 20, 22];
  for (let y = 2; y < 24; y++) {
    for (const sign of [0, 0x80]) {
      const key = Buffer.alloc(32);
      [key[0], key[31]] = [y, sign];
      if (off.includes(y)) assert.throws(() => parse(key), refusal, `y = ${y}`);
      else assert.doesNotThrow(() => parse(key), `y = ${y}`);
    }
  }
});

test('a public key is base64 of 32 bytes in its canonical spelling', () => {
  const key = hex(RFC_8032[0]?.[1] ?? '');
  const text = key.toString('base64');
  assert.equal(parsePublicKey(text), text);
  const others = ['', `${text}\n`, ` ${text}`, text.slice(0, -1), key.toString('hex'), key.toString('base64url')];
  const lengths = [key.subarray(1), Buffer.concat([key, key])].map((bytes) => bytes.toString('base64'));
  for (const other of [...others, ...lengths]) assert.throws(() => parsePublicKey(other), refusal, other);
});

test('a signature of another length is not valid, and is not an error', async () => {
  const { publicKey, privateKeyPem } = await generateAgentKeys();
  const message = randomBytes(32);
  const signature = sign(null, message, createPrivateKey(privateKeyPem));
  assert.equal(await isSignatureValid(publicKey, message, signature), true);
  const zero = Buffer.alloc(1);
  const others = [Buffer.alloc(0), signature.subarray(1), signature.subarray(0, 63), Buffer.concat([signature, zero])];
  for (const other of [...others, Buffer.concat([signature, signature])]) {
    assert.equal(await isSignatureValid(publicKey, message, other), false, `${other.length} bytes`);
  }
});

test('a signature with its scalar raised by the order of the group is not valid', async () => {
  const [, publicKey = '', message = '', signature = ''] = RFC_8032[1] ?? [];
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const scalar = BigInt(`0x${hex(signature).subarray(32).reverse().toString('hex')}`) + order;
  const raised = hex(scalar.toString(16).padStart(64, '0')).reverse();
  const malleable = Buffer.concat([hex(signature).subarray(0, 32), raised]);
  assert.equal(await isSignatureValid(parse(hex(publicKey)), hex(message), malleable), false);
});

test('a generated pair signs with OpenSSL, from its PEM, and the signature is valid', async (t) => {
  const directory = temporaryDirectory(t);
  const [keyFile, nonceFile, signatureFile] = ['key.pem', 'nonce', 'signature'].map((name) => join(directory, name));
  const { publicKey, privateKeyPem } = await generateAgentKeys();
  assert.match(privateKeyPem, /^-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9+/=\n]+\n-----END PRIVATE KEY-----\n$/);
  assert.equal(parsePublicKey(publicKey), publicKey);
  const nonce = randomBytes(32);
  writeFileSync(keyFile ?? '', privateKeyPem, { mode: 0o600 });
  writeFileSync(nonceFile ?? '', nonce);
  const flags = ['pkeyutl', '-sign', '-rawin', '-inkey', keyFile, '-in', nonceFile, '-out', signatureFile];
  execFileSync('openssl', flags.map(String));
  const signature = readFileSync(signatureFile ?? '');
  assert.equal(await isSignatureValid(publicKey, nonce, signature), true);
  assert.equal(await isSignatureValid(publicKey, randomBytes(32), signature), false);
  const { publicKey: another } = await generateAgentKeys();
  assert.notEqual(another, publicKey);
  assert.equal(await isSignatureValid(another, nonce, signature), false);
});

test('the dummy key for unknown agents is a point of the curve, so that verifying with it takes as long', () => {
  assert.equal(parsePublicKey(DUMMY_PUBLIC_KEY), DUMMY_PUBLIC_KEY);
  const prime = 2n ** 255n - 19n;
  const power = (base: bigint, exponent: bigint): bigint => {
    if (exponent === 0n) return 1n;
    const half = power((base * base) % prime, exponent / 2n);
    return exponent % 2n === 1n ? (half * base) % prime : half;
  };
  const bytes = Buffer.from(DUMMY_PUBLIC_KEY, 'base64').reverse();
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  const y2 = BigInt(`0x${bytes.toString('hex')}`) ** 2n % prime;
  const d = ((prime - 121665n) * power(121666n, prime - 2n)) % prime;
  // SOURCE: RFC 8032, section 5.1.3: x² = (y² - 1) / (d y² + 1) must be a square.
  const x2 = ((y2 - 1n + prime) * power(d * y2 + 1n, prime - 2n)) % prime;
  assert.equal(power(x2, (prime - 1n) / 2n), 1n);
});

// Signatures of webhooks. SOURCE: Standard Webhooks 1.0.0, whose libraries all verify this example.

test('the example of the specification has its signature', () => {
  const key = parseWebhookSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw') ?? assert.fail();
  const signature = webhookSignature(key, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}');
  assert.equal(signature, 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

test('a secret has 24 to 64 bytes of strict base64, with or without its prefix', () => {
  const secretOf = (bytes: number): string => Buffer.alloc(bytes, 1).toString('base64');
  for (const bytes of [24, 32, 64]) {
    assert.equal(parseWebhookSecret(`whsec_${secretOf(bytes)}`)?.length, bytes);
    assert.equal(parseWebhookSecret(secretOf(bytes))?.length, bytes);
  }
  for (const text of ['', 'whsec_', secretOf(23), secretOf(65), `${secretOf(32)}=`, 'whsec_not base64 at all, no'])
    assert.equal(parseWebhookSecret(text), null);
});

/** Claims that twenty pieces of work run three places at a time, in the order in which they came. */
async function assertThreeAtOnce(gate: Semaphore): Promise<void> {
  let inside = 0;
  let most = 0;
  const begun: number[] = [];
  const work = (number: number) => async (): Promise<number> => {
    begun.push(number);
    inside += 1;
    most = Math.max(most, inside);
    await sleep(1);
    inside -= 1;
    return number * 2;
  };
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  const results = await Promise.all(numbers.map((number) => gate.run(work(number))));
  assert.deepEqual(
    results,
    numbers.map((number) => number * 2),
  );
  assert.equal(most, 3);
  assert.deepEqual(begun, numbers);
}

test('at most the permitted number of tasks run concurrently, in the order of their arrival, and every result is returned', () =>
  assertThreeAtOnce(new Semaphore(3)));

test('the semaphore has all its places again after it was idle', async () => {
  const gate = new Semaphore(3);
  await assertThreeAtOnce(gate);
  await assertThreeAtOnce(gate);
});

test('failed work releases its place, and rejects only its caller', async () => {
  const gate = new Semaphore(1);
  const failing = gate.run(() => Promise.reject(new Error('broken')));
  const after = gate.run(() => Promise.resolve('done'));
  await assert.rejects(failing, /broken/);
  assert.equal(await after, 'done');
});
