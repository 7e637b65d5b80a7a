// The parameters of a manual slot, with which a command can compute its secret again.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { slotPrivateKey, slotPublicKey } from '../../src/crypto/key-slots.ts';
import { newShares } from '../../src/crypto/shares.ts';
import { KEY_SLOTS } from '../../src/store/schema.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const SLOTS = '/api/v1/key/slots';
const service = await startTestService({ after });

const PUBLIC_KEY = slotPublicKey(slotPrivateKey(new Uint8Array(32).fill(7)));
const WORDS = { salt: 'AAAAAAAAAAAAAAAAAAAAAA==', memory_kib: 65_536, passes: 3, lanes: 1 };
const { group, digests } = await newShares(3, 2);
const QUORUM = { group, threshold: 2, shares: 3, digests };

for (const [kind, name, parameters, message] of [
  ['passphrase', 'without parameters', {}, 'parameters.salt: must be the base64 of 16 bytes'],
  ['passphrase', 'with a short salt', { ...WORDS, salt: 'AAAA' }, 'parameters.salt: must be the base64 of 16 bytes'],
  [
    'passphrase',
    'with too many passes',
    { ...WORDS, passes: 17 },
    'parameters.passes: must be an integer from 3 to 16',
  ],
  ['passphrase', 'with lanes as text', { ...WORDS, lanes: '1' }, 'parameters.lanes: must be an integer from 1 to 16'],
  [
    'passphrase',
    'with less memory than a new slot has',
    { ...WORDS, memory_kib: 65_535 },
    'parameters.memory_kib: must be an integer from 65536 to 1048576',
  ],
  ['shamir', 'without parameters', {}, 'parameters.group: must be 8 hexadecimal digits in lower case'],
  ['shamir', 'with too many shares', { ...QUORUM, shares: 256 }, 'parameters.shares: must be an integer from 2 to 255'],
  [
    'shamir',
    'with a threshold above its shares',
    { ...QUORUM, threshold: 4 },
    'parameters.threshold: must be an integer from 2 to the number of shares',
  ],
  [
    'shamir',
    'with a threshold as text',
    { ...QUORUM, threshold: '2' },
    'parameters.threshold: must be an integer from 2 to the number of shares',
  ],
  [
    'shamir',
    'with digests of fewer shares',
    { ...QUORUM, shares: 4 },
    'parameters.digests: must be the base64 of 16 bytes for each share',
  ],
] as const) {
  test(`a slot of the kind ${kind} is not added ${name}`, async () => {
    const slot = { name: 'words', kind, public_key: PUBLIC_KEY, parameters };
    assert.equal(assertRejected(await service.admin.post(SLOTS, slot), 'INVALID_REQUEST'), message);
  });
}

test('two slots do not have shares of the same group', async () => {
  const slot = { kind: 'shamir', public_key: PUBLIC_KEY, parameters: QUORUM };
  const both = await Promise.all(['one', 'two'].map((name) => service.admin.post(SLOTS, { ...slot, name })));
  assert.deepEqual(both.map(({ status }) => status).sort(), [201, 409]);
  const third = await service.admin.post(SLOTS, { ...slot, name: 'three' });
  assert.match(assertRejected(third, 'ALREADY_EXISTS'), /^A key slot has this group of shares/);
});

test('names of slots that differ only in case are two names, also in a backup', async () => {
  const slot = { kind: 'passphrase', public_key: PUBLIC_KEY, parameters: WORDS };
  for (const name of ['Case', 'case']) assert.equal((await service.admin.post(SLOTS, { ...slot, name })).status, 201);
  assert.deepEqual(KEY_SLOTS.unique, { column: 'name', isCaseless: false });
});

test('a parameter that a database cannot store is rejected', async () => {
  for (const text of ['\u0000', '\ud800']) {
    const slot = { name: 'odd', kind: 'passphrase', public_key: PUBLIC_KEY, parameters: { ...WORDS, x: text } };
    assert.match(assertRejected(await service.admin.post(SLOTS, slot), 'INVALID_REQUEST'), /^parameters: must have/);
  }
});
