/** A long log, written through the store's port. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import type { AuditEntry } from '../../src/core/audit.ts';
import { headMac, linkEntry } from '../../src/crypto/chain.ts';
import type { VaultKeys } from '../../src/crypto/keys.ts';
import type { Store } from '../../src/store/port.ts';

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
      hmac = linkEntry(keys.audit, hmac, next);
      entries.push({ ...next, hmac });
    }
    const turn = await store.openTurn([]);
    const mac = headMac(keys.audit, seq, hmac);
    await (await turn.commit({ entries, head: { ...head, seq, hmac, mac }, changes: [], accesses: new Map() })).durable;
  }
}

/** How many threads of the process have the priority; SOURCE: proc(5), field 19 of `stat`. Linux. */
export function countThreadsAt(priority: number, pid: number | 'self' = 'self'): number {
  const stats = readdirSync(`/proc/${pid}/task`).map((task) => {
    try {
      return readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1');
    } catch {
      return ''; // it has ended since
    }
  });
  // The second field may hold anything, in parentheses; behind it stands the third.
  return stats.filter((stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16] === String(priority)).length;
}
