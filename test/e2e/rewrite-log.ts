/**
 * An attacker with the vault's database, its data directory and all its keys: the rewritten log is valid with every
 * key, and so are its tree and its rollback marker.
 */

import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { entryMac, headMac } from '../../src/crypto/chain.ts';
import { CompactRange, type TreeNode } from '../../src/crypto/tree.ts';
import { toStoredNodes } from '../../src/ledger/vault-state.ts';
import { dataDirPaths } from '../../src/platform/paths.ts';
import { RollbackMarker } from '../../src/server/rollback-marker.ts';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import { type AuditEntry, type EntryWithoutMac, GENESIS_MAC } from '../../src/vault/audit/audit-entry.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { openStore } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

export type Rewriting = (entries: readonly EntryWithoutMac[]) => readonly EntryWithoutMac[];

/** Writes the log again. No service may run. The entries are numbered in their order. */
export async function rewriteLog(dataDir: string, rewriting: Rewriting): Promise<void> {
  const keys = await vaultKeysOf(dataDir);
  const store = await openStore(dataDir);
  const { head } = await store.run(readHead());
  assert.ok(head);
  const former = await store.run(readEntries(1, head.seq, head.seq));
  const tree = CompactRange.empty();
  const completed: TreeNode[] = [];
  let hmac = GENESIS_MAC;
  const entries = rewriting(former).map((entry, index): AuditEntry => {
    const { hmac: _, ...draft } = { hmac: '', ...entry, seq: index + 1 };
    hmac = entryMac(keys.auditAt(draft.seq), hmac, draft);
    tree.append(hmac, completed);
    return { ...draft, hmac };
  });
  const outside = await openDirectDb(dataDir);
  await outside.run('DELETE FROM audit_entries; DELETE FROM audit_tree; DELETE FROM checkpoints');
  await outside.close();
  const fields = { ...head, seq: entries.length, hmac, tree: tree.toString() };
  const transaction = await store.begin([]);
  const treeNodes = toStoredNodes(completed);
  const written = await transaction.commit({
    entries,
    head: { ...fields, mac: headMac(keys.auditAt(fields.seq), fields) },
    treeNodes,
    changes: [],
    accesses: new Map(),
  });
  await written.durable;
  await store.close();
  const { rollbackMarkerFile, checkpointsFile } = dataDirPaths(dataDir);
  rmSync(checkpointsFile);
  const marker = new RollbackMarker(rollbackMarkerFile, keys);
  await marker.keep({ seq: fields.seq, hmac });
  await marker.close();
}
