/** The stored nodes of the Merkle tree, and its checkpoints. */
import { parseNumbered } from './audit-log.ts';
import { CHECKPOINTS, type StoredCheckpoint } from './audit-tables.ts';
import { type Procedure, type Statement, sql } from './statement.ts';
import type { StoredTreeNode } from './store.ts';

/** The stored nodes of a level with `from` ≤ position < `to`, in order. */
export function* readTreeNodes(level: number, from: number, to: number): Procedure<StoredTreeNode[]> {
  const [row] =
    yield sql`SELECT string_agg(position || ' ' || replace(hash, ',', ''), ',' ORDER BY position) AS nodes FROM audit_tree
    WHERE level = ${level} AND position >= ${from} AND position < ${to}`;
  return parseNumbered(row?.['nodes']).map(([position, hash]) => ({ level, position, hash }));
}

/** Adds the checkpoint unless one of that generation and size exists. */
export function insertCheckpoint({ generation, size, signedAt, note }: StoredCheckpoint): Statement {
  return sql`INSERT INTO checkpoints (generation, size, signed_at, note)
    VALUES (${generation}, ${size}, ${signedAt}, ${note}) ON CONFLICT (generation, size) DO NOTHING`;
}

/** The newest checkpoint of the newest generation; null if none was signed. */
export function* readNewestCheckpoint(): Procedure<StoredCheckpoint | null> {
  const [row] = yield sql`SELECT ${CHECKPOINTS.list} FROM checkpoints ORDER BY generation DESC, size DESC LIMIT 1`;
  return row === undefined ? null : CHECKPOINTS.decode(row);
}

/** The checkpoint of that generation and size; null if none was signed. */
export function* readCheckpoint(generation: number, size: number): Procedure<StoredCheckpoint | null> {
  const [row] = yield sql`SELECT ${CHECKPOINTS.list} FROM checkpoints
    WHERE generation = ${generation} AND size = ${size}`;
  return row === undefined ? null : CHECKPOINTS.decode(row);
}
