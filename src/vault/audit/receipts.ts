/** Hands out the newest checkpoint, and proofs against it. SOURCE: docs/audit.md. */

import { authorize, type Context } from '../../core/operation.ts';
import { formatReceipt } from '../../crypto/checkpoint.ts';
import { encodeHash, isConsistent, rootOfInclusion } from '../../crypto/tree.ts';
import { ApiError, invalidRequest } from '../../engine/errors.ts';
import { readEntries } from '../../store/audit-log.ts';
import type { Vault } from '../vault.ts';
import { CheckpointConflictError, type SignedCheckpoint } from './checkpoints.ts';
import { IncompleteTreeError, LogTree } from './log-tree.ts';
import type { ProvenConsistency, ProvenEntry } from './proofs.ts';

/** @throws ACCESS_DENIED, UNAUTHENTICATED, SESSION_EXPIRED, INTEGRITY_FAILURE, UNAVAILABLE, as all functions here do */
export async function readCheckpoint(vault: Vault, context: Context): Promise<SignedCheckpoint> {
  await vault.ledger.read(authorize(context, 'audit.checkpoint'));
  return intact(() => vault.checkpoints.covering(0));
}

/** @throws NOT_FOUND if the audit log has no such entry */
export async function proveEntry(vault: Vault, context: Context, seq: number): Promise<ProvenEntry> {
  await vault.ledger.read(authorize(context, 'audit.proof'));
  const [entry] = await vault.store.run(readEntries(seq, seq, 1));
  if (entry === undefined) throw new ApiError('NOT_FOUND', 'The audit log has no such entry.');
  const { hmac } = entry;
  return intact(async () => {
    const { size, root, note, verifierKey } = await vault.checkpoints.covering(seq);
    const proof = await new LogTree(vault.store, size).inclusionProof(seq);
    if (rootOfInclusion(hmac, seq - 1, size, proof) !== root) throw new IncompleteTreeError();
    const receipt = formatReceipt({ seq, hmac, proof, checkpoint: note });
    return { seq, hmac, size, proof: proof.map(encodeHash), receipt, verifierKey };
  });
}

/**
 * `to` is by default the size of the newest checkpoint. @throws INVALID_REQUEST for a size beyond the end of the
 * audit log
 */
export async function proveConsistency(
  vault: Vault,
  context: Context,
  from: number,
  to: number | null,
): Promise<ProvenConsistency> {
  await vault.ledger.read(authorize(context, 'audit.proof'));
  return intact(async () => {
    const newest = await vault.checkpoints.covering(to ?? from);
    const size = to ?? newest.size;
    if (size > newest.size)
      throw invalidRequest('to', 'must not be greater than the number of entries of the audit log');
    if (from > size) throw invalidRequest('from', 'must not be greater than the size of the later tree');
    const later = new LogTree(vault.store, size);
    const earlierRoot = await later.root(from);
    const proof = await later.consistencyProof(from);
    const root = size === newest.size ? newest.root : await later.root();
    if (!isConsistent({ size: from, root: earlierRoot }, { size, root }, proof)) {
      throw new IncompleteTreeError();
    }
    return {
      from,
      to: size,
      fromRoot: encodeHash(earlierRoot),
      toRoot: encodeHash(root),
      proof: proof.map(encodeHash),
    };
  });
}

async function intact<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof IncompleteTreeError) && !(error instanceof CheckpointConflictError)) throw error;
    throw new ApiError(
      'INTEGRITY_FAILURE',
      'The audit log does not agree with its signed tree: it was altered. Verify it: GET /api/v1/audit/verify.',
    );
  }
}
