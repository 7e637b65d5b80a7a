/** Reading all of the log, a step at a time, while the service goes on. */
import type { AuditEntry } from '../../core/audit.ts';
import type { Store } from '../../store/store.ts';
import { yieldToEventLoop } from '../paging.ts';

/** Oldest first, up to and with `lastSeq`. */
export async function* scanEntries(
  store: Store,
  lastSeq: number,
  stepRows: number,
): AsyncGenerator<readonly AuditEntry[]> {
  let next = 1;
  while (next <= lastSeq) {
    const rows = await store.readEntries(next, lastSeq, stepRows);
    const last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    next = last.seq + 1;
    await yieldToEventLoop();
  }
}
