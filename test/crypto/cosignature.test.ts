// Which responses of a witness cosign a note.

import assert from 'node:assert/strict';
import { generateKeyPairSync, hash, sign } from 'node:crypto';
import { test } from 'node:test';
import { findCosignature, parseWitnessKey } from '../../src/crypto/cosignature.ts';
import { signNote } from '../../src/crypto/signed-note.ts';

const NAME = 'witness.example/w1';
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const KEY = Buffer.concat([Buffer.from([4]), publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)]);
const ID = hash('sha256', Buffer.concat([Buffer.from(`${NAME}\n`), KEY]), 'buffer').subarray(0, 4);
const WITNESS = parseWitnessKey(`${NAME}+${ID.toString('hex')}+${KEY.toString('base64')}`) ?? assert.fail();
const TEXT = 'leasehold/x\n1\nroot\n';
const NOTE = signNote(TEXT, { name: 'leasehold/x', ...generateKeyPairSync('ed25519') });

function cosign(text: string, seconds: number): string {
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(seconds));
  const signature = sign(null, Buffer.from(`cosignature/v1\ntime ${seconds}\n${text}`), privateKey);
  return `— ${NAME} ${Buffer.concat([ID, time, signature]).toString('base64')}\n`;
}

test('the first valid line over the text of the note is taken', () => {
  const [other, first, second] = [cosign('another text\n', 1), cosign(TEXT, 2), cosign(TEXT, 3)];
  assert.equal(findCosignature(NOTE, `${other}${first}${second}`, WITNESS), first);
});

for (const [what, response] of [
  ['a signature over another text', cosign('another text\n', 1)],
  ['an empty response', ''],
  ['a valid line after an empty line', `\n${cosign(`${NOTE}`, 1)}`],
  ['another text, and a signature over the note with that text', `more\n\n${cosign(`${NOTE}more\n`, 1)}`],
] as const) {
  test(`${what} cosigns nothing`, () => {
    assert.equal(findCosignature(NOTE, response, WITNESS), null);
  });
}
