/** The `audit` subcommands. */
import { setTimeout as sleep } from 'node:timers/promises';
import { MAX_PAGE_ROWS } from '../../client/api-client.ts';
import { LeaseholdError } from '../../client/errors.ts';
import type { AuditEntry, AuditFilter, Leasehold } from '../../client/leasehold.ts';
import { actorName } from '../../core/grammars.ts';
import { EVENT_TYPES } from '../../core/permissions.ts';
import type { FlagValues } from '../../flags/flag.ts';
import { choice, instant, parsed, text, wholeNumber, withoutNulls } from '../../flags/flag.ts';
import { RESULTS } from '../../vault/audit/audit-entry.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { EXIT } from '../errors.ts';
import { toCell } from '../output/cells.ts';
import { toHeading } from '../output/output.ts';
import { withVerificationProgress } from '../progress.ts';
import { printNotice } from '../terminal.ts';
import { contradiction, readCheckpointFile } from './audit-proofs.ts';

const ACTIONS = [...new Set(EVENT_TYPES.map((type) => type.slice(type.indexOf('.') + 1)))];
const COLUMNS = ['seq', 'timestamp', 'event_type', 'agent_name', 'resource', 'result', 'reason'];

const FILTERS = {
  'agent-name': parsed(
    'NAME',
    'only entries of this agent, or of admin or service (--agent selects the identity of the CLI)',
    actorName.parse,
  ),
  resource: text('GLOB', 'only entries on this path; * matches any characters, ? matches one'),
  action: choice('ACTION', ACTIONS, 'only this action, such as retrieve'),
  event: choice('TYPE', EVENT_TYPES, 'only this event type, such as credential.retrieve'),
  result: choice(RESULTS.join('|'), RESULTS, 'only this result'),
};

function toFilter(
  flags: FlagValues<typeof FILTERS> & { readonly since?: string | null; readonly until?: string | null },
): AuditFilter {
  const { 'agent-name': agent, resource, action, event: event_type, result, since, until } = flags;
  return withoutNulls({ agent, resource, action, event_type, result, since, until });
}

const list = defineCommand({
  name: 'audit list',
  flags: {
    ...FILTERS,
    since: instant('only entries since this time: ISO 8601, or an age such as 90m, 2h or 7d'),
    until: instant('only entries until this time, in the same notation'),
    limit: wholeNumber('print at most N entries (default 100)'),
  },
  examples: {
    'leasehold audit list --result denied --since 1d': 'list the denials of the last 24 hours',
  },
  async run(invocation, { limit, ...filters }) {
    const entries = await newest(invocation.connect(), toFilter(filters), limit ?? 100, invocation.signal);
    await invocation.output.records(entries, COLUMNS, 'No matching entries.');
  },
});

async function newest(vault: Leasehold, filter: AuditFilter, limit: number, signal: AbortSignal) {
  const entries: AuditEntry[] = [];
  for (let [offset, wanted] = [0, Math.min(limit, MAX_PAGE_ROWS)]; ; wanted = MAX_PAGE_ROWS) {
    // Entries appended in the meantime would shift the pages. `until` excludes later ones, and the sequence number
    // excludes entries of the same time.
    const until = entries[0]?.timestamp ?? filter.until;
    const page = { ...filter, ...withoutNulls({ until }), limit: wanted, offset };
    const { data } = await vault.audit.list(page, { signal });
    assertIncreasing(data.toReversed());
    const last = entries.at(-1)?.seq ?? Number.POSITIVE_INFINITY;
    const more = data.filter(({ seq }) => seq < last);
    entries.push(...more);
    if (data.length < wanted || entries.length >= limit) return entries.slice(0, limit);
    if (more.length === 0) throw new LeaseholdError('INVALID_RESPONSE', 'the audit log has no last page');
    offset += data.length;
  }
}

const tail = defineCommand({
  name: 'audit tail',
  flags: { ...FILTERS, last: wholeNumber('start with the last N entries (default 10)') },
  async run(invocation, { last, ...filters }) {
    await followLog(invocation, invocation.connect(), toFilter(filters), last ?? 10);
  },
});

const POLL_INTERVAL_MS = 1000;

/** Returns when the signal aborts. @throws LeaseholdError */
async function followLog(invocation: Invocation, vault: Leasehold, filter: AuditFilter, last: number): Promise<void> {
  const { signal, terminal, output } = invocation;
  const { data } = await vault.audit.list({ ...filter, limit: Math.min(last, MAX_PAGE_ROWS) }, { signal });
  assertIncreasing(data.toReversed());
  if (output.isTable) terminal.stdout.write(toLine(Object.keys(WIDTHS).map(toHeading)));
  for (const entry of data.toReversed()) await print(invocation, entry);
  let from = data[0] ?? (await vault.audit.list({ limit: 1 }, { signal })).data[0] ?? null;
  try {
    for (;;) {
      await sleep(POLL_INTERVAL_MS, undefined, { signal });
      // Timestamps never decrease along the audit log, so each query starts at the last one and skips entries already
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
  if (output.isTable)
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
function assertIncreasing(entries: readonly AuditEntry[], after = 0): void {
  let last = after;
  for (const { seq } of entries) {
    // WHY not <=: a missing number would pass, and the audit log would have no end.
    if (!(seq > last)) throw new LeaseholdError('INVALID_RESPONSE', 'the audit entries are not in order');
    last = seq;
  }
}

const verify = defineCommand({
  name: 'audit verify',
  about: ['Reads every entry and recomputes its MAC. The exit code is 3 if the chain is broken.'],
  flags: {
    checkpoint: text('FILE', 'also check that the audit log extends the checkpoint in this file; - for standard input'),
  },
  async run(invocation, { checkpoint: file }) {
    const { terminal, signal } = invocation;
    const kept = file === null ? null : await readCheckpointFile(invocation, file);
    const vault = invocation.connect();
    const verification = await withVerificationProgress(
      invocation,
      'Verifying',
      vault.audit,
      vault.audit.verify({ signal }),
    );
    const problem = kept === null || !verification.valid ? null : await contradiction(vault, kept, signal);
    const extended = kept === null || !verification.valid ? {} : { extends_checkpoint: problem === null };
    await invocation.output.record({ ...verification, ...extended });
    if (problem !== null) printNotice(terminal, problem);
    return verification.valid && problem === null ? EXIT.OK : EXIT.NEGATIVE;
  },
});

export const COMMANDS: readonly Command[] = [list, tail, verify];
