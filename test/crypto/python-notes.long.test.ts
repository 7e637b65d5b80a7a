// The independent verifier on signed notes, both modified ones and notes of other programs. SOURCE: docs/formats.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CHECKPOINTS } from './checkpoint-vectors.ts';
import { callVerifier } from './python-verifier.ts';

const NEWEST = CHECKPOINTS.checkpoints[6]?.note ?? '';
const RECEIPT = CHECKPOINTS.receipts.find(({ seq, size }) => seq === 4 && size === 6)?.receipt ?? '';

test('no flipped bit of a receipt, of its checkpoint or of the verifier key is accepted', async () => {
  const accepted = await callVerifier(
    `
def is_valid(receipt, verifiers):
    try:
        read = verifier.read_receipt(receipt)
        checkpoint = verifier.open_checkpoint(read.checkpoint, verifiers)
        return verifier.root_of_inclusion(read.hmac, read.index, checkpoint.size, read.proof) == checkpoint.root
    except (ValueError, verifier.Forged):
        return False

def flips(text):
    for bit in range(len(text) * 8):
        altered = bytearray(text)
        altered[bit >> 3] ^= 1 << (bit & 7)
        yield bytes(altered)

receipt, key = given["receipt"].encode(), given["key"].encode()
verifiers = [verifier.read_verifier(key)]
answer = [is_valid(receipt, verifiers), sum(is_valid(altered, verifiers) for altered in flips(receipt)), 0]
for altered in flips(key):
    try:
        verifier.read_verifier(altered)
        answer[2] += 1
    except ValueError:
        pass
`,
    { receipt: RECEIPT, key: CHECKPOINTS.verifier_key },
  );
  assert.deepEqual(accepted, [true, 0, 0]);
});

test('each note is accepted or rejected as in Go', async () => {
  const notes = CHECKPOINTS.notes.map(({ note }) => note);
  const texts = await callVerifier(
    `
verifiers = [verifier.read_verifier(given["key"].encode())]
answer = []
for note in given["notes"]:
    try:
        answer.append(verifier.open_note(note.encode(), verifiers)[0])
    except (ValueError, verifier.Forged):
        answer.append(None)
`,
    { key: CHECKPOINTS.verifier_key, notes: [...notes, `${NEWEST}${'— x AAAAAAA=\n'.repeat(16)}`] },
  );
  for (const [at, { name, note, accepted }] of CHECKPOINTS.notes.entries()) {
    assert.equal(texts[at] !== null, accepted, name);
    if (accepted) assert.ok(note.startsWith(`${texts[at]}\n— `), name);
  }
  assert.equal(texts.at(-1), null, '17 signatures');
});
