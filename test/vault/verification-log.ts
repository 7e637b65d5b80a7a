/** A long log: written through the store, tampered with, and verified by a sequential scan. */

import assert from 'node:assert/strict';
import { entryMac, headMac } from '../../src/crypto/chain.ts';
import { CompactRange, type TreeNode } from '../../src/crypto/tree.ts';
import type { VaultKeys } from '../../src/crypto/vault-keys.ts';
import { readVaultState, toStoredNodes } from '../../src/ledger/vault-state.ts';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import type { Store } from '../../src/store/port.ts';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import { ChainVerifier } from '../../src/vault/audit/verification/chain-verifier.ts';
import { THREADS_THRESHOLD, type VerificationResult } from '../../src/vault/audit/verification/verifier.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { type Scope, withScope } from '../kit/directory.ts';
import { type OpenedVault, openVault, put, verify } from './fixture.ts';

/** WHY few: PostgreSQL ends a transaction in which a busy client sends nothing for two seconds. */
const ENTRIES_A_TURN = 1000;

/** Writes entries up to a number; each is like the first one, with a separate id and time. */
export async function lengthenLog(store: Store, keys: Pick<VaultKeys, 'audit'>, length: number): Promise<void> {
  const { head } = await store.run(readHead());
  const [model] = await store.run(readEntries(1, 1, 1));
  assert.ok(head);
  assert.ok(model);
  let { seq, hmac } = head;
  const tree = CompactRange.parse(head.tree, seq);
  assert.ok(tree);
  const from = Date.parse(model.timestamp) + 60_000;
  while (seq < length) {
    const entries: AuditEntry[] = [];
    while (entries.length < ENTRIES_A_TURN && seq < length) {
      const id = `${model.id.slice(0, 24)}${String(++seq).padStart(12, '0')}`;
      const next = { ...model, seq, id, timestamp: new Date(from + seq).toISOString() };
      hmac = entryMac(keys.audit, hmac, next);
      entries.push({ ...next, hmac });
    }
    const nodes: TreeNode[] = [];
    for (const entry of entries) tree.append(entry.hmac, nodes);
    const fields = { ...head, seq, hmac, tree: tree.toString() };
    const next = { ...fields, mac: headMac(keys.audit, fields) };
    const treeNodes = toStoredNodes(nodes);
    const turn = await store.begin([]);
    await (await turn.commit({ entries, head: next, treeNodes, changes: [], accesses: new Map() })).durable;
  }
}

/** A vault whose log is verified by threads; the ledger continues after its end. */
export async function openLongVault(scope: Scope, length: number): Promise<OpenedVault> {
  assert.ok(length >= THREADS_THRESHOLD, 'no thread would look at it');
  const vault = await openVault(scope);
  await put(vault, 'a/b');
  await lengthenLog(vault.real, vault.keys, length);
  const { tip, lastEntryAt } = await readVaultState(vault.real, vault.keys);
  Object.assign(vault.ledger.memory, { tip, lastEntryAt });
  return vault;
}

/** SQL that tampers with entries, without its condition. */
export const HOW = {
  altered: `UPDATE audit_entries SET resource = resource || '!'`,
  removed: 'DELETE FROM audit_entries',
  exchanged: `UPDATE audit_entries SET hmac = CASE substr(hmac, 1, 1) WHEN 'A' THEN 'B' ELSE 'A' END || substr(hmac, 2)`,
} as const;

/** Tampers with the entries, such as `seq IN (3, 4)`, verifies, and restores them. */
export async function tamper(vault: OpenedVault, how: string, which: string, look: () => Promise<void>): Promise<void> {
  const outside = await openDirectDb(vault.directory);
  await outside.run(`CREATE TEMP TABLE kept AS SELECT * FROM audit_entries WHERE ${which}`);
  try {
    await outside.run(`${how} WHERE ${which}`);
    await look();
  } finally {
    await outside.run(`DELETE FROM audit_entries WHERE ${which}; INSERT INTO audit_entries SELECT * FROM kept`);
    await outside.close();
  }
}

type Place = readonly [entry: number, timestamp: string | null];

/** The first break that a sequential scan finds in a log that had so many entries. */
async function firstBreak(vault: OpenedVault, length: number): Promise<Place | null> {
  const check = new ChainVerifier(vault.keys);
  while (check.point.seq < length) {
    const entries = await vault.real.run(readEntries(check.point.seq + 1, length, ENTRIES_A_TURN));
    if (entries.length === 0) return [check.point.seq + 1, check.point.timestamp];
    for (const entry of entries) {
      const broken = check.next(entry);
      if (broken !== null) return [broken.entry, broken.timestamp];
    }
  }
  return null;
}

const placeOf = (found: VerificationResult): Place | null =>
  found.isValid ? null : [found.breakAtEntry, found.breakAtTimestamp];

/**
 * Tampers, and asserts that threads find the same break as a sequential scan. WHY another node on a shared store: a
 * node that misses an entry that it has seen reads nothing and makes no decisions, and so authorises no verification.
 */
export async function assertSameBreak(vault: OpenedVault, length: number, how: string, which: string): Promise<void> {
  await tamper(vault, how, which, async () => {
    await withScope(async (scope) => {
      const looking = vault.real.isMultiWriter ? await openVault(scope, { directory: vault.directory }) : vault;
      const expected = await firstBreak(looking, length);
      assert.notEqual(expected, null);
      assert.deepEqual(placeOf(await verify(looking)), expected);
    });
  });
}
