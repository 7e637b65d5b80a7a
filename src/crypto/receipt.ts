/**
 * Receipts: the proof that an entry is in the log, with the checkpoint that it leads to, as one text that a third party
 * verifies with the public key alone. The extra data is the leaf's data: the entry's MAC.
 * SOURCE: https://c2sp.org/tlog-proof; docs/formats.md, "Receipts".
 */
import { openCheckpoint } from './checkpoint.ts';
import { decodeStrictBase64 } from './encoding.ts';
import type { NoteVerifier } from './signed-note.ts';
import { decodeHash, encodeHash, type TreeHash } from './tree.ts';
import { rootOfInclusion } from './tree-proof.ts';

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const INDEX_LINE = /^index (0|[1-9][0-9]{0,15})$/;
const MAC_BYTES = 32;

export interface ReceiptParts {
  readonly seq: number;
  /** Base64 of the entry's MAC. */
  readonly hmac: string;
  readonly proof: readonly TreeHash[];
  /** The note of the checkpoint. */
  readonly checkpoint: string;
}

export function formatReceipt({ seq, hmac, proof, checkpoint }: ReceiptParts): string {
  return [FIRST_LINE, `extra ${hmac}`, `index ${seq - 1}`, ...proof.map(encodeHash), '', checkpoint].join('\n');
}

/** Null if the text is not a receipt. Checks no signature and no hash. */
export function parseReceipt(text: string): ReceiptParts | null {
  const end = text.indexOf('\n\n');
  const [first, extra, index, ...hashes] = text.slice(0, end).split('\n');
  const seq = Number(INDEX_LINE.exec(index ?? '')?.[1]) + 1;
  const hmac = extra?.startsWith('extra ') === true ? extra.slice('extra '.length) : '';
  const proof = hashes.map(decodeHash).filter((hash) => hash !== null);
  const isReceipt = end > 0 && first === FIRST_LINE && decodeStrictBase64(hmac)?.length === MAC_BYTES;
  if (!isReceipt || !Number.isSafeInteger(seq) || proof.length !== hashes.length) return null;
  return { seq, hmac, proof, checkpoint: text.slice(end + 2) };
}

/** What a valid receipt proves; null if it is not a receipt, or proves nothing under this key. */
export function openReceipt(
  text: string,
  verifier: NoteVerifier,
): { readonly seq: number; readonly hmac: string; readonly size: number } | null {
  const receipt = parseReceipt(text);
  const checkpoint = receipt === null ? null : openCheckpoint(receipt.checkpoint, verifier);
  if (receipt === null || checkpoint === null) return null;
  const { seq, hmac, proof } = receipt;
  const root = rootOfInclusion(hmac, seq - 1, checkpoint.size, proof);
  return root === checkpoint.root ? { seq, hmac, size: checkpoint.size } : null;
}
