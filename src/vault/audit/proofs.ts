/** Checkpoints and proofs, as they are handed out. SOURCE: docs/api.md, "The audit log"; docs/audit.md. */
import * as grammar from '../../core/grammars.ts';
import { list } from '../../engine/compounds.ts';
import { optional, type ValueOf } from '../../engine/field.ts';
import { anyText, count, integer, MAX_EXACT, positive, text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';

const verifierKey = anyText({ wire: 'verifier_key' });
const hashes = (description: string) => list(anyText(), { min: 0 }, { description });

export const Checkpoint = shape('Checkpoint', {
  origin: anyText({ description: 'The name of the audit log.' }),
  size: count(),
  rootText: anyText({
    wire: 'root',
    description: 'Base64 of the root of the Merkle tree over the MACs of the first `size` entries.',
  }),
  note: anyText({ description: 'The signed note, in the form of C2SP `tlog-checkpoint`.' }),
  verifierKey: anyText({ wire: 'verifier_key', description: 'The public key of the note: `name+key id+base64`.' }),
  signedAt: time({ wire: 'signed_at' }),
});

const ENTRY_PROOF = {
  seq: positive(),
  hmac: anyText(),
  size: count({ description: 'The size of the tree of the checkpoint.' }),
  proof: hashes('Base64 of the hashes, from the sibling of the leaf up.'),
  receipt: anyText({ description: 'Proof and checkpoint as one text, in the form of C2SP `tlog-proof`.' }),
  verifierKey,
};
export const EntryProof = shape('EntryProof', ENTRY_PROOF);
export type ProvenEntry = ValueOf<typeof ENTRY_PROOF>;

const CONSISTENCY_PROOF = {
  from: count(),
  to: count(),
  fromRoot: anyText({ wire: 'from_root' }),
  toRoot: anyText({ wire: 'to_root' }),
  proof: hashes('Base64 of the hashes, as in RFC 6962, section 2.1.2.'),
};
export const ConsistencyProof = shape('ConsistencyProof', CONSISTENCY_PROOF);
export type ProvenConsistency = ValueOf<typeof CONSISTENCY_PROOF>;

/** The nodes of the Merkle tree: the root of a complete subtree with 2^`level` leaves, and its position from 0. */
export const TREE_ROWS = stored({
  table: 'audit_tree',
  key: ['level', 'position'],
  fields: { level: integer({ min: 1, max: 64 }), position: count(), hash: text(grammar.hash()) },
});
export type StoredTreeNode = ValueOf<typeof TREE_ROWS.fields>;

/** Signed notes about the first `size` entries. `generation` is that of the signing key. */
export const CHECKPOINT_ROWS = stored({
  table: 'checkpoints',
  key: ['generation', 'size'],
  fields: { generation: positive(), size: count(), signedAt: time(), note: anyText() },
});
export type StoredCheckpoint = ValueOf<typeof CHECKPOINT_ROWS.fields>;

export const ConsistencyQuery = shape('ConsistencyQuery', {
  from: integer({ min: 0, max: MAX_EXACT }, { description: 'The size of the smaller tree.' }),
  to: optional(
    integer(
      { min: 0, max: MAX_EXACT },
      { description: 'The size of the larger tree; by default the size of the newest checkpoint.' },
    ),
  ),
});
