// The Ed25519 verification of the independent verifier: against RFC 8032 and against node:crypto.

import assert from 'node:assert/strict';
import { createPublicKey, randomBytes, sign, verify } from 'node:crypto';
import { test } from 'node:test';
import { signerFrom } from './checkpoint-vectors.ts';
import { callVerifier } from './python-verifier.ts';
import { flipped } from './vectors.ts';

/** SOURCE: RFC 8032, section 7.1: TEST 1, 2, 3 and SHA(abc). In hexadecimal. */
const RFC_8032 = [
  {
    key: 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a',
    message: '',
    signature:
      'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b',
  },
  {
    key: '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c',
    message: '72',
    signature:
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
  },
  {
    key: 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025',
    message: 'af82',
    signature:
      '6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a',
  },
  {
    key: 'ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf',
    message:
      'ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f',
    signature:
      'dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704',
  },
];

const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const SPKI_PREFIX = '302a300506032b6570032100';

interface Signed {
  readonly key: string;
  readonly message: string;
  readonly signature: string;
}

/** Whether the verifier accepts each; null where it rejects the key. */
function verifyInPython(signed: readonly Signed[]): Promise<(boolean | null)[]> {
  return callVerifier(
    `
answer, keys = [], {}
for each in given:
    key, message, signature = (bytes.fromhex(each[name]) for name in ("key", "message", "signature"))
    try:
        if key not in keys:
            keys[key] = verifier.Ed25519(key)
        answer.append(keys[key].verify(message, signature))
    except ValueError:
        answer.append(None)
`,
    signed,
  );
}

function isValidInNode({ key, message, signature }: Signed): boolean {
  const publicKey = createPublicKey({ key: Buffer.from(SPKI_PREFIX + key, 'hex'), format: 'der', type: 'spki' });
  return verify(null, Buffer.from(message, 'hex'), publicKey, Buffer.from(signature, 'hex'));
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The same signature with a scalar that is larger by the order of the group. */
function withLargerScalar(signature: string): string {
  const scalar = BigInt(`0x${hex(Buffer.from(signature.slice(64), 'hex').reverse())}`) + ORDER;
  return signature.slice(0, 64) + hex(Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex').reverse());
}

/** Signatures of the third vector that must not be valid, and messages that it does not sign. */
function forgeries(): Signed[] {
  const third = RFC_8032[2] ?? assert.fail();
  const altered = [...flipped(Buffer.from(third.signature, 'hex'))].map((each) => hex(each.altered));
  altered.push(...RFC_8032.slice(0, 2).map(({ signature }) => signature), '', third.signature.slice(2));
  altered.push(`${third.signature}00`, withLargerScalar(third.signature));
  return [
    ...altered.map((signature) => ({ ...third, signature })),
    ...['', 'af83', 'af8200'].map((message) => ({ ...third, message })),
  ];
}

/** Signatures of several keys, each also under the key of the next. */
function ofManyKeys(): Signed[] {
  const signed = Array.from({ length: 40 }, (_, at) => {
    const signer = signerFrom(100 + (at % 5), 'any');
    const message = randomBytes(at * 7);
    const signature = sign(null, message, signer.privateKey);
    const key = hex(signer.publicKey.export({ type: 'spki', format: 'der' }).subarray(SPKI_PREFIX.length / 2));
    return { key, message: hex(message), signature: hex(signature) };
  });
  return [...signed, ...signed.map((each, at) => ({ ...each, key: signed[at + 1]?.key ?? '' })).slice(0, -1)];
}

/** y = 2 is not on the curve; x = 0 with the sign set; y = p and y = p + 1, which is 1. */
const NOT_CANONICAL = [
  '02'.padEnd(64, '0'),
  `01${'00'.repeat(30)}80`,
  `ed${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(30)}7f`,
];

test('the verifier judges signatures as RFC 8032 and node:crypto do, and rejects keys that are no canonical points', async () => {
  const [first = assert.fail()] = RFC_8032;
  const many = ofManyKeys();
  const groups: readonly (readonly [readonly Signed[], (each: Signed) => boolean | null])[] = [
    [RFC_8032, () => true],
    [forgeries(), () => false],
    [many, isValidInNode],
    [NOT_CANONICAL.map((key) => ({ ...first, key })), () => null],
  ];
  const expected = groups.flatMap(([signed, judge]) => signed.map(judge));
  assert.deepEqual(await verifyInPython(groups.flatMap(([signed]) => signed)), expected);
  assert.equal(many.filter(isValidInNode).length, 40);
});
