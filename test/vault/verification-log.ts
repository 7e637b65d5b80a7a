/**
 * A long log: written through the store's port, tampered with, and what one look from its first entry to its last says
 * of it.
 */
import assert from 'node:assert/strict';
import type { AuditEntry } from '../../src/core/audit.ts';
import { entryMac, headMac } from '../../src/crypto/chain.ts';
import type { VaultKeys } from '../../src/crypto/keys.ts';
import type { Store } from '../../src/store/store.ts';
import { ChainVerifier } from '../../src/vault/verification/chain-verifier.ts';
import { THREADS_THRESHOLD, type VerificationResult } from '../../src/vault/verification/verifier.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import { type Scope, withScope } from '../kit/directory.ts';
import { type OpenedVault, openVault, put, verify } from './fixture.ts';

const ENTRIES_A_TURN = 5000;

/** Writes entries until there are so many; each like the first one, with an id and a time of its own. */
export async function lengthenLog(store: Store, keys: Pick<VaultKeys, 'audit'>, length: number): Promise<void> {
  const { head } = await store.readHead();
  const [model] = await store.readEntries(1, 1, 1);
  assert.ok(head);
  assert.ok(model);
  let { seq, hmac } = head;
  const from = Date.parse(model.timestamp) + 60_000;
  while (seq < length) {
    const entries: AuditEntry[] = [];
    while (entries.length < ENTRIES_A_TURN && seq < length) {
      const id = `${model.id.slice(0, 24)}${String(++seq).padStart(12, '0')}`;
      const next = { ...model, seq, id, timestamp: new Date(from + seq).toISOString() };
      hmac = entryMac(keys.audit, hmac, next);
      entries.push({ ...next, hmac });
    }
    const turn = await store.begin([]);
    const mac = headMac(keys.audit, seq, hmac);
    await (await turn.commit({ entries, head: { ...head, seq, hmac, mac }, changes: [], accesses: new Map() })).durable;
  }
}

/** A vault whose log threads verify; the ledger goes on behind its end. */
export async function openLongVault(scope: Scope, length: number): Promise<OpenedVault> {
  assert.ok(length >= THREADS_THRESHOLD, 'no thread would look at it');
  const vault = await openVault(scope);
  await put(vault, 'a/b');
  await lengthenLog(vault.real, vault.keys, length);
  const { head, last } = await vault.real.readHead();
  vault.ledger.memory.tip = head ?? assert.fail();
  vault.ledger.memory.lastEntryAt = Date.parse(last?.timestamp ?? '');
  return vault;
}

/** What is done to entries; which ones is said behind it. */
export const HOW = {
  altered: `UPDATE audit_entries SET resource = resource || '!'`,
  removed: 'DELETE FROM audit_entries',
  exchanged: `UPDATE audit_entries SET hmac = CASE substr(hmac, 1, 1) WHEN 'A' THEN 'B' ELSE 'A' END || substr(hmac, 2)`,
} as const;

/** Does it to the entries, such as `seq IN (3, 4)`; looks, and puts them back. */
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

/** Where one look from the first entry on finds the first break of a log that was so long. */
async function firstBreak(vault: OpenedVault, length: number): Promise<Place | null> {
  const check = new ChainVerifier(vault.keys);
  while (check.point.seq < length) {
    const entries = await vault.real.readEntries(check.point.seq + 1, length, ENTRIES_A_TURN);
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
 * Tampers: threads find the break that one look from end to end finds. WHY another node where several share the store:
 * one that has seen an entry which is gone decides nothing any more, not even who may verify.
 */
export async function assertSameBreak(vault: OpenedVault, length: number, how: string, which: string): Promise<void> {
  await tamper(vault, how, which, async () => {
    const expected = await firstBreak(vault, length);
    assert.notEqual(expected, null);
    await withScope(async (scope) => {
      const looking = vault.real.isMultiWriter ? await openVault(scope, { directory: vault.directory }) : vault;
      assert.deepEqual(placeOf(await verify(looking)), expected);
    });
  });
}
