/** Follows the audit log: prints the last entries, then new ones. */

import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_PAGE_ROWS } from '../client/api-client.ts';
import { LeaseholdError } from '../client/errors.ts';
import type { AuditEntry, AuditFilter, Leasehold } from '../client/leasehold.ts';
import type { Invocation } from './command.ts';
import { toCell } from './output/cells.ts';
import { toHeading } from './output/table.ts';

const POLL_INTERVAL_MS = 1000;

/** Returns when the signal aborts. @throws LeaseholdError */
export async function followLog(
  invocation: Invocation,
  vault: Leasehold,
  filter: AuditFilter,
  last: number,
): Promise<void> {
  const { signal, terminal, output } = invocation;
  const { data } = await vault.audit.list({ ...filter, limit: Math.min(last, MAX_PAGE_ROWS) }, { signal });
  assertIncreasing(data.toReversed());
  if (output.isForPeople) terminal.stdout.write(toLine(Object.keys(WIDTHS).map(toHeading)));
  for (const entry of data.toReversed()) await print(invocation, entry);
  let from = data[0] ?? (await vault.audit.list({ limit: 1 }, { signal })).data[0] ?? null;
  try {
    for (;;) {
      await sleep(POLL_INTERVAL_MS, undefined, { signal });
      // Timestamps never decrease along the log, so each query starts at the last one and skips entries already
      // printed.
      const since = from === null ? {} : { since: from.timestamp };
      let seq = 0;
      for (let [offset, rows] = [0, MAX_PAGE_ROWS]; rows === MAX_PAGE_ROWS; offset += rows) {
        const page = { ...filter, ...since, order: 'asc' as const, limit: MAX_PAGE_ROWS, offset };
        const { data: found } = await vault.audit.list(page, { signal });
        assertIncreasing(found, seq);
        seq = found.at(-1)?.seq ?? seq;
        for (const entry of found) {
          if (entry.seq <= (from?.seq ?? 0)) continue;
          await print(invocation, entry);
          from = entry;
        }
        rows = found.length;
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** Prints entries one by one, because the output has no end. In YAML each is an item of one list. */
async function print({ terminal, output }: Invocation, entry: AuditEntry): Promise<void> {
  if (output.isForPeople)
    terminal.stdout.write(toLine(Object.keys(WIDTHS).map((column) => toCell(entry[column as keyof AuditEntry]))));
  else if (output.format === 'json' && output.field === null) output.jsonLine({ ...entry });
  else await output.records([entry], [], null);
}

/** Fixed column widths that fit most cells, because later entries are unknown. */
const WIDTHS = { seq: 7, timestamp: 24, event_type: 19, agent_name: 16, resource: 24, result: 9, reason: 0 } as const;

function toLine(cells: readonly string[]): string {
  const widths = Object.values(WIDTHS);
  return `${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}\n`;
}

/** Expects entries oldest first, all after sequence number `after`. @throws LeaseholdError INVALID_RESPONSE */
export function assertIncreasing(entries: readonly AuditEntry[], after = 0): void {
  let last = after;
  for (const { seq } of entries) {
    if (seq <= last) throw new LeaseholdError('INVALID_RESPONSE', 'the audit entries are not in order');
    last = seq;
  }
}
