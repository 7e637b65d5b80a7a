// A log of millions of entries, written in bulk: only the last entry has a MAC of the vault. The tree is that of all
// MACs, and the log continues after it.

import { hash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { entryMac, headMac } from '../src/crypto/chain.ts';
import { newId } from '../src/crypto/primitives.ts';
import { CompactRange, type TreeNode } from '../src/crypto/tree.ts';
import { toStoredNodes } from '../src/ledger/vault-state.ts';
import { openKeys, readRootKey } from '../src/server/open-keys.ts';
import { readEntries, readHead } from '../src/store/audit-log.ts';
import type { Store } from '../src/store/port.ts';
import { readStoredKeys } from '../src/store/vault-metadata.ts';
import type { AuditEntry } from '../src/vault/audit/audit-entry.ts';

const macOf = (seq: number): string => hash('sha256', String(seq), 'base64');

/** Writes the entries from `from` to `to`, each with that timestamp and the MAC of its number. */
type InsertEntries = (from: number, to: number, timestamp: string) => Promise<void>;

const COLUMNS =
  'seq, id, timestamp, event_type, agent_name, resource, action, result, policy_name, lease_id, request_id, remote_addr, hmac';

function insertFrom(numbers: string, timestamp: string, hexadecimal: string, mac: string): string {
  return `INSERT INTO audit_entries (${COLUMNS}) ${numbers}
    SELECT seq, '019d2e92-a3e1-7a4f-8d02-' || ${hexadecimal}, '${timestamp}', 'credential.retrieve', 'bench-agent-1',
      'team-1/app-1/api-key', 'retrieve', 'allowed', 'bench-0', '019d2e92-b1d0-7f08-a3b7-' || ${hexadecimal},
      '0123abcd-' || ${hexadecimal}, '127.0.0.1', ${mac} FROM numbers`;
}

export const insertSqlite =
  (file: string): InsertEntries =>
  async (from, to, timestamp) => {
    const database = new DatabaseSync(file);
    database.exec('PRAGMA synchronous = OFF');
    database.function('mac_of', (seq) => macOf(Number(seq)));
    const numbers = `WITH RECURSIVE numbers (seq) AS
      (VALUES (${from}) UNION ALL SELECT seq + 1 FROM numbers WHERE seq < ${to})`;
    database.exec(insertFrom(numbers, timestamp, "printf('%012x', seq)", 'mac_of(seq)'));
    database.close();
  };

export const insertPostgres =
  (query: (sql: string) => Promise<unknown>): InsertEntries =>
  async (from, to, timestamp) => {
    const numbers = `WITH numbers AS (SELECT generate_series(${from}, ${to}) AS seq)`;
    const mac = "encode(sha256(seq::text::bytea), 'base64')";
    const sql = insertFrom(numbers, timestamp, "lpad(to_hex(seq), 12, '0')", mac);
    await query(sql.replace('audit_entries', 'leasehold.audit_entries'));
  };

const ENTRIES_A_STEP = 1_000_000;

/** Lengthens the log of a vault that no service has open. Closes the store. */
export async function lengthenLog(
  store: Store,
  rootKeyFile: string,
  length: number,
  insert: InsertEntries,
): Promise<void> {
  const { keys } = openKeys(
    await store.run(readStoredKeys()),
    readRootKey({ dataDir: '', rootKeyFile }, false, () => {}),
  );
  const { head } = await store.run(readHead());
  const tree = head === null ? null : CompactRange.parse(head.tree, head.seq);
  const [model] = head === null ? [] : await store.run(readEntries(head.seq, head.seq, 1));
  if (head === null || tree === null || model === undefined) throw new Error('the vault has no log');
  for (let from = head.seq + 1; from < length; from += ENTRIES_A_STEP) {
    await insert(from, Math.min(from + ENTRIES_A_STEP, length) - 1, model.timestamp);
  }
  const completed: TreeNode[] = [];
  for (let seq = head.seq + 1; seq < length; seq++) tree.append(macOf(seq), completed);
  const { hmac: _, ...draft } = { ...model, seq: length, id: newId() };
  const hmac = entryMac(keys.audit, macOf(length - 1), draft);
  tree.append(hmac, completed);
  const entries: AuditEntry[] = [{ ...draft, hmac }];
  const fields = { ...head, seq: length, hmac, tree: tree.toString() };
  const transaction = await store.begin([]);
  const { durable } = await transaction.commit({
    entries,
    head: { ...fields, mac: headMac(keys.audit, fields) },
    treeNodes: toStoredNodes(completed),
    changes: [],
    accesses: new Map(),
  });
  await durable;
  await store.close();
}
