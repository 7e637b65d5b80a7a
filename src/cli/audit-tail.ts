/** Following the audit log: the last entries, and then each new one as it comes. */

import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_PAGE_ROWS } from '../client/api-client.ts';
import type { AuditEntry, AuditFilter, Leasehold } from '../client/leasehold.ts';
import type { Invocation } from './command.ts';
import { assertIncreasing } from './entry-order.ts';
import { toCell } from './output/cells.ts';
import { toHeading } from './output/table.ts';

const EVERY_MS = 1000;
/** Ends when the signal is aborted. @throws LeaseholdError */
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
  // Times never fall along the log: from the last one's on, those that were seen are left out.
  let from = seen.at(-1) ?? (await vault.audit.list({ limit: 1 }, { signal })).data[0] ?? null;
  for (;;) {
    try {
      await sleep(EVERY_MS, undefined, { signal });
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

/** One after the other, because nobody knows how many there will be. */
async function print({ terminal, output, flag }: Invocation, entry: AuditEntry): Promise<void> {
  const write = (text: string): void => void terminal.stdout.write(text);
  if (flag('field') !== null || output.format === 'env') await output.record(entry);
  else if (output.format === 'json') output.jsonLine({ ...entry });
  else if (output.format === 'yaml') {
    write('---\n');
    await output.record(entry);
  } else {
    write(toLine(Object.keys(WIDTHS).map((column) => toCell(entry[column as keyof AuditEntry]))));
  }
}

/** By column: what most cells fit in, because the entries to come are not known. */
const WIDTHS = { seq: 7, timestamp: 24, event_type: 19, agent_name: 16, resource: 24, result: 9, reason: 0 } as const;

function toLine(cells: readonly string[]): string {
  const widths = Object.values(WIDTHS);
  return `${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join('  ')}\n`;
}

/** For people, above the entries. */
function printHeadings({ terminal, output }: Invocation): void {
  if (output.isForPeople) terminal.stdout.write(toLine(Object.keys(WIDTHS).map(toHeading)));
}
