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
  const { signal } = invocation;
  const { data } = await vault.audit.list({ ...filter, limit: Math.min(last, MAX_PAGE_ROWS) }, { signal });
  let seen = data.toReversed();
  assertIncreasing(seen);
  printHeadings(invocation);
  for (const entry of seen) await print(invocation, entry);
  // Timestamps never decrease along the log, so the next query starts at the last one and skips entries already
  // printed.
  let from = seen.at(-1) ?? (await vault.audit.list({ limit: 1 }, { signal })).data[0] ?? null;
  for (;;) {
    try {
      await sleep(POLL_INTERVAL_MS, undefined, { signal });
      for (let isFull = true; isFull; ) {
        seen = await next(vault, filter, from, signal);
        for (const entry of seen) await print(invocation, entry);
        from = seen.at(-1) ?? from;
        isFull = seen.length === MAX_PAGE_ROWS;
      }
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
  }
}

async function next(vault: Leasehold, filter: AuditFilter, from: AuditEntry | null, signal: AbortSignal) {
  const found: AuditEntry[] = [];
  const since = from === null ? {} : { since: from.timestamp };
  let last = 0;
  for (let offset = 0; found.length < MAX_PAGE_ROWS; offset += MAX_PAGE_ROWS) {
    const page = { ...filter, ...since, order: 'asc' as const, limit: MAX_PAGE_ROWS, offset };
    const { data } = await vault.audit.list(page, { signal });
    assertIncreasing(data, last);
    last = data.at(-1)?.seq ?? last;
    found.push(...data.filter(({ seq }) => seq > (from?.seq ?? 0)));
    if (data.length < MAX_PAGE_ROWS) break;
  }
  return found;
}

/** Prints entries one by one, because the output has no end. */
async function print({ terminal, output }: Invocation, entry: AuditEntry): Promise<void> {
  const write = (text: string): void => void terminal.stdout.write(text);
  if (output.field !== null || output.format === 'env') await output.record(entry);
  else if (output.format === 'json') output.jsonLine({ ...entry });
  else if (output.format === 'yaml') {
    write('---\n');
    await output.record(entry);
  } else {
    write(toLine(Object.keys(WIDTHS).map((column) => toCell(entry[column as keyof AuditEntry]))));
  }
}

/** Fixed column widths that fit most cells, because later entries are unknown. */
const WIDTHS = { seq: 7, timestamp: 24, event_type: 19, agent_name: 16, resource: 24, result: 9, reason: 0 } as const;

function toLine(cells: readonly string[]): string {
  const widths = Object.values(WIDTHS);
  return `${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}\n`;
}

/** Prints the table header. */
function printHeadings({ terminal, output }: Invocation): void {
  if (output.isForPeople) terminal.stdout.write(toLine(Object.keys(WIDTHS).map(toHeading)));
}

/** Expects entries oldest first, all after sequence number `after`. @throws LeaseholdError INVALID_RESPONSE */
export function assertIncreasing(entries: readonly AuditEntry[], after = 0): void {
  let last = after;
  for (const { seq } of entries) {
    if (seq <= last) throw new LeaseholdError('INVALID_RESPONSE', 'the audit entries are not in order');
    last = seq;
  }
}
