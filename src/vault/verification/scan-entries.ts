/** Reads the whole log in steps, between which the event loop serves callers. */

import type { AuditEntry } from '../../core/audit.ts';
import { readEntries } from '../../store/audit-log.ts';
import type { Store } from '../../store/port.ts';
import { yieldToEventLoop } from '../paging.ts';

/** Yields the entries from the oldest up to `lastSeq`, inclusive. */
export async function* scanEntries(
  store: Store,
  lastSeq: number,
  stepRows: number,
): AsyncGenerator<readonly AuditEntry[]> {
  let next = 1;
  while (next <= lastSeq) {
    const rows = await store.run(readEntries(next, lastSeq, stepRows));
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    next = last.seq + 1;
    await yieldToEventLoop();
  }
}
