// Signed notes against Go's implementation (frozen in test/vectors), and against notes that nothing may accept.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { openNote, parseVerifierKey, signNote, verifierKey } from '../../src/crypto/checkpoint.ts';
import { anyText, runs, wellFormedText } from '../kit/property.ts';
import { CHECKPOINTS, SIGNER, signerFrom } from './checkpoint-vectors.ts';
import { flipped } from './vectors.ts';

const TEXT = 'first line\n\nünïcode — line\n';
const NOTE = signNote(TEXT, SIGNER);
const SIGNATURE_LINE = NOTE.slice(NOTE.lastIndexOf('\n\n') + 2);
const UNKNOWN_LINE = '— witness.example/w1 AAAAAAA=\n';

test('each note is accepted or rejected as in Go', () => {
  const accepted = CHECKPOINTS.notes.filter((each) => each.accepted);
  assert.ok(accepted.length > 5 && accepted.length < CHECKPOINTS.notes.length - 5);
  for (const { name, note, accepted: isAccepted } of CHECKPOINTS.notes) {
    const text = openNote(note, SIGNER);
    assert.equal(text !== null, isAccepted, name);
    if (text !== null) assert.ok(note.startsWith(`${text}\n— `), name);
  }
});

test('a note is signed as in Go, byte for byte', () => {
  assert.equal(NOTE, CHECKPOINTS.notes.find(({ name }) => name === 'signed')?.note);
});

test('the verifier key is the one of Go, and can be read again', () => {
  assert.equal(verifierKey(SIGNER), CHECKPOINTS.verifier_key);
  const parsed = parseVerifierKey(`${CHECKPOINTS.verifier_key}\n`);
  assert.ok(parsed);
  assert.equal(verifierKey(parsed), CHECKPOINTS.verifier_key);
  assert.equal(openNote(NOTE, parsed), TEXT);
});

test('the example of the specification is valid', () => {
  const verifier = parseVerifierKey('example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k');
  assert.ok(verifier);
  const signature = 'Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=';
  const note = `This is an example message.\n\n— example.com/foo ${signature}\n`;
  assert.equal(openNote(note, verifier), 'This is an example message.\n');
});

test('a note with any flipped bit, and a truncated one, is invalid', () => {
  for (const { altered, bit } of flipped(Buffer.from(NOTE)))
    assert.equal(openNote(altered.toString(), SIGNER), null, `bit ${bit}`);
  for (let length = 0; length < NOTE.length; length++)
    assert.equal(openNote(NOTE.slice(0, length), SIGNER), null, `length ${length}`);
});

test('a verifier key with any flipped bit is another key or none', () => {
  for (const { altered, bit } of flipped(Buffer.from(CHECKPOINTS.verifier_key))) {
    assert.equal(parseVerifierKey(altered.toString()), null, `bit ${bit}`);
  }
});

test('verifier keys of another algorithm, length or name are rejected', () => {
  const [name = '', , key = ''] = CHECKPOINTS.verifier_key.split('+');
  const withKey = (bytes: Uint8Array) => `${name}+00000000+${Buffer.from(bytes).toString('base64')}`;
  const bytes = Buffer.from(key, 'base64');
  for (const text of [
    '',
    '+',
    '++',
    name,
    `${name}+${key}`,
    CHECKPOINTS.verifier_key.replace(name, ''),
    CHECKPOINTS.verifier_key.replace(name, 'a b'),
    withKey(bytes.subarray(0, 32)),
    withKey(Buffer.concat([bytes, Buffer.alloc(1)])),
    withKey(Buffer.concat([Buffer.from([4]), bytes.subarray(1)])),
  ])
    assert.equal(parseVerifierKey(text), null, text);
});

test('a signature is valid only for the name and the key together', () => {
  const otherName = { ...SIGNER, name: 'leasehold/another' };
  const otherKey = signerFrom(9, SIGNER.name);
  for (const other of [otherName, otherKey]) {
    assert.equal(openNote(NOTE, other), null);
    assert.equal(openNote(signNote(TEXT, other), SIGNER), null);
  }
  const renamed = NOTE.replace(`— ${SIGNER.name} `, `— ${otherName.name} `);
  for (const verifier of [SIGNER, otherName]) assert.equal(openNote(renamed, verifier), null);
});

test('signatures of unknown keys are ignored, up to 16 signatures', () => {
  for (const count of [1, 15]) {
    const lines = UNKNOWN_LINE.repeat(count);
    assert.equal(openNote(NOTE + lines, SIGNER), TEXT, `${count} after it`);
    assert.equal(openNote(`${TEXT}\n${lines}${SIGNATURE_LINE}`, SIGNER), TEXT, `${count} before it`);
    assert.equal(openNote(`${TEXT}\n${lines}`, SIGNER), null, `${count} alone`);
  }
  assert.equal(openNote(NOTE + UNKNOWN_LINE.repeat(16), SIGNER), null);
});

test('a note with an invalid signature of the key is rejected, even if another one is valid', () => {
  const forged = signNote('another text\n', SIGNER).split('\n').at(-2);
  for (const lines of [`${forged}\n${SIGNATURE_LINE}`, `${SIGNATURE_LINE}${forged}\n`])
    assert.equal(openNote(`${TEXT}\n${lines}`, SIGNER), null);
  assert.equal(openNote(`${TEXT}\n${SIGNATURE_LINE}${SIGNATURE_LINE}`, SIGNER), TEXT);
});

test('a signature has one spelling', () => {
  // The last character before the padding has two bits that no byte uses.
  const [, last = ''] = /(.)=\n$/.exec(NOTE) ?? [];
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const at = alphabet.indexOf(last);
  const spellings = [1, 2, 3].map((bits) => NOTE.replace(/.=\n$/, `${alphabet[at | bits]}=\n`));
  spellings.push(NOTE.replace(/=\n$/, '\n'), NOTE.replace(/=\n$/, '==\n'), NOTE.replace(/=\n$/, '====\n'));
  for (const note of spellings) assert.equal(openNote(note, SIGNER), null, note);
});

test('any text of lines can be signed and opened', () => {
  fc.assert(
    fc.property(fc.array(wellFormedText(), { minLength: 1, maxLength: 6 }), (lines) => {
      const text = `${lines.map((line) => line.replace(/\p{Cc}/gu, '')).join('\n')}\n`;
      assert.equal(openNote(signNote(text, SIGNER), SIGNER), text);
    }),
    runs(100),
  );
});

test('no input makes the parsers throw', () => {
  const part = fc.oneof(
    anyText(),
    fc.constantFrom('\n', '\n\n', '— ', ' ', '+', '=', SIGNER.name, SIGNATURE_LINE, TEXT, CHECKPOINTS.verifier_key),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
      const text = parts.join('');
      const opened = openNote(text, SIGNER);
      if (opened !== null) assert.ok(parts.includes(TEXT) && parts.includes(SIGNATURE_LINE));
      const verifier = parseVerifierKey(text);
      if (verifier !== null) assert.equal(verifierKey(verifier), text.trim());
    }),
    runs(100, 1000),
  );
});
