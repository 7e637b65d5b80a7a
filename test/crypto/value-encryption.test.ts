// Encrypted values: only authentic ones can be decrypted. The layout is frozen in test/vectors/sealing-v1.json.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { CredentialId, CredentialType } from '../../src/core/names.ts';
import type { CredentialPath } from '../../src/core/path.ts';
import { decryptValue, encryptValue } from '../../src/crypto/value-encryption.ts';
import { type AssociatedData, Secret } from '../../src/vault/credentials/credential.ts';
import { wellFormedText } from '../kit/property.ts';
import { flipped, keysFrom, keysOf, readVectors } from './vectors.ts';

interface ValueVector {
  readonly name: string;
  readonly credential_id: CredentialId;
  readonly path: CredentialPath;
  readonly type: CredentialType;
  readonly version: number;
  readonly sealed: string;
}

const vectors = readVectors<{
  root_key: string;
  sealed: (ValueVector & { readonly value: string })[];
  tampered: ValueVector[];
}>('sealing-v1.json');
const keys = keysOf(vectors.root_key);

const boundOf = (vector: ValueVector): AssociatedData => ({
  credentialId: vector.credential_id,
  path: vector.path,
  type: vector.type,
  version: vector.version,
});
const bound: AssociatedData = {
  credentialId: 'c1' as CredentialId,
  path: 'a/b' as CredentialPath,
  type: 'token' as CredentialType,
  version: 3,
};
const encrypted = Buffer.from(encryptValue(keys, new Secret('a short value'), bound));

test('the frozen values are decrypted to their texts', () => {
  assert.notEqual(vectors.sealed.length, 0);
  for (const vector of vectors.sealed) {
    const value = decryptValue(keys, Buffer.from(vector.sealed, 'base64'), boundOf(vector));
    assert.equal(value?.reveal(), vector.value, vector.name);
  }
});

for (const vector of vectors.tampered) {
  test(`a frozen value cannot be decrypted: ${vector.name}`, () => {
    assert.equal(decryptValue(keys, Buffer.from(vector.sealed, 'base64'), boundOf(vector)), null);
  });
}

test('an encrypted value is decrypted to the same text, with any Unicode', () => {
  fc.assert(
    fc.property(wellFormedText(300), fc.nat(), (text, version) => {
      const under = { ...bound, version };
      assert.equal(decryptValue(keys, encryptValue(keys, new Secret(text), under), under)?.reveal(), text);
    }),
  );
});

for (const [name, text] of [
  ['one NUL', '\0'],
  ['a byte order mark', '\ufeffx'],
  ['256 KiB of one byte each', 'x'.repeat(262_144)],
  ['256 KiB of four bytes each', '\u{1f511}'.repeat(65_536)],
  ['256 KiB of NUL', '\0'.repeat(262_144)],
] as const) {
  test(`an encrypted value is decrypted to the same text: ${name}`, () => {
    assert.ok(decryptValue(keys, encryptValue(keys, new Secret(text), bound), bound)?.reveal() === text);
  });
}

test('the layout is format version, key id, nonce, ciphertext of the length of the text, tag', () => {
  assert.equal(encrypted.length, 1 + 4 + 12 + Buffer.byteLength('a short value') + 16);
  assert.equal(encrypted[0], 1);
  assert.deepEqual(encrypted.subarray(1, 5), Buffer.from(keys.currentDataKeyId));
  assert.equal(encrypted.includes('short'), false);
});

test('a value with any single altered bit cannot be decrypted', () => {
  for (const { altered, bit } of flipped(encrypted))
    assert.equal(decryptValue(keys, altered, bound), null, `bit ${bit}`);
});

test('a value of any other length cannot be decrypted', () => {
  for (let length = 0; length < encrypted.length; length++) {
    assert.equal(decryptValue(keys, encrypted.subarray(0, length), bound), null, `cut to ${length}`);
    assert.equal(decryptValue(keys, encrypted.subarray(encrypted.length - length), bound), null, `the last ${length}`);
  }
  assert.equal(decryptValue(keys, Buffer.concat([encrypted, Buffer.alloc(1)]), bound), null);
  assert.equal(decryptValue(keys, Buffer.concat([encrypted, encrypted]), bound), null);
});

test('every other format version and every other key id is rejected before decryption', () => {
  for (let version = 0; version < 256; version++) {
    if (version === 1) continue;
    assert.equal(decryptValue(keys, Buffer.concat([Buffer.from([version]), encrypted.subarray(1)]), bound), null);
  }
  const renamed = Buffer.concat([encrypted.subarray(0, 1), keysFrom(9).currentDataKeyId, encrypted.subarray(5)]);
  assert.equal(decryptValue(keys, renamed, bound), null);
  assert.equal(decryptValue(keysFrom(9), renamed, bound), null);
  assert.equal(decryptValue(keysFrom(9), encrypted, bound), null);
});

test('a value is decrypted only with the same associated data', () => {
  const text = wellFormedText(12);
  const place = fc.record({ credentialId: text, path: text, type: text, version: fc.nat(20) });
  fc.assert(
    fc.property(place, place, (at, elsewhere) => {
      const value = encryptValue(keys, new Secret('v'), at as AssociatedData);
      const isSame = JSON.stringify(at) === JSON.stringify(elsewhere);
      assert.equal(decryptValue(keys, value, elsewhere as AssociatedData) !== null, isSame);
    }),
  );
  for (const moved of [
    { credentialId: 'c2' as CredentialId },
    { path: 'a/c' as CredentialPath },
    { type: 'tokem' as CredentialType },
    { version: 4 },
    { path: 'a/bt' as CredentialPath, type: 'oken' as CredentialType },
  ]) {
    assert.equal(decryptValue(keys, encrypted, { ...bound, ...moved }), null, JSON.stringify(moved));
  }
});

test('no two values share a nonce, and encrypting a value twice gives different results', () => {
  const nonces = new Set<string>();
  for (let i = 0; i < 2000; i++) {
    const value = Buffer.from(encryptValue(keys, new Secret('same'), bound));
    nonces.add(value.subarray(5, 17).toString('hex'));
  }
  assert.equal(nonces.size, 2000);
});
