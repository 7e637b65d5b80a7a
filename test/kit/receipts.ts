/** Reads receipts. `scripts/verify_audit.py` is the verifier that rejects the others. */
import { type NoteVerifier, openCheckpoint } from '../../src/crypto/checkpoint.ts';
import { decodeHash, rootOfInclusion } from '../../src/crypto/tree.ts';

export const noteOf = (receipt: string): string => receipt.slice(receipt.indexOf('\n\n') + 2);

/** The entry that the receipt proves under the key; null if it proves none. */
export function openReceipt(receipt: string, verifier: NoteVerifier) {
  const [, extra = '', index = '', ...hashes] = receipt.slice(0, receipt.indexOf('\n\n')).split('\n');
  const hmac = extra.slice('extra '.length);
  const seq = Number(index.slice('index '.length)) + 1;
  const checkpoint = openCheckpoint(noteOf(receipt), verifier);
  if (checkpoint === null) return null;
  const { size, root } = checkpoint;
  const proof = hashes.map((hash) => decodeHash(hash) ?? '');
  return rootOfInclusion(hmac, seq - 1, size, proof) === root ? { seq, hmac, size } : null;
}
