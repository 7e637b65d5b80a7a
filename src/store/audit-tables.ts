/** The tables of the audit log: entries, tree and checkpoints. */
import type { AuditEntry } from '../core/audit.ts';
import type { StoredTreeNode } from './store.ts';
import { Table } from './table.ts';

export const AUDIT_ENTRIES = new Table<AuditEntry>('audit_entries', ['seq'], {
  seq: 'number',
  id: 'text',
  timestamp: 'text',
  event_type: 'text',
  agent_name: 'text',
  resource: 'text',
  action: 'text',
  result: 'text',
  policy_name: 'text',
  lease_id: 'text',
  reason: 'text',
  request_id: 'text',
  remote_addr: 'text',
  hmac: 'text',
  method: 'text',
  host: 'text',
  target_path: 'text',
  status: 'number',
  bytes_in: 'number',
  bytes_out: 'number',
  redactions: 'number',
  ended: 'text',
  subject: 'text',
  state: 'text',
});

export const AUDIT_TREE = new Table<StoredTreeNode>('audit_tree', ['level', 'position'], {
  level: 'number',
  position: 'number',
  hash: 'text',
});

/** A signed note about the first `size` entries. */
export interface StoredCheckpoint {
  /** Of the signing key. */
  readonly generation: number;
  readonly size: number;
  /** Milliseconds since 1970. */
  readonly signedAt: number;
  readonly note: string;
}

export const CHECKPOINTS = new Table<StoredCheckpoint>('checkpoints', ['generation', 'size'], {
  generation: 'number',
  size: 'number',
  signedAt: 'number',
  note: 'text',
});
