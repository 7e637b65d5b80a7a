/** Commands on the audit log. */
import { MAX_PAGE_ROWS } from '../../client/api-client.ts';
import { LeaseholdError } from '../../client/errors.ts';
import type { AuditEntry, AuditFilter, Leasehold } from '../../client/leasehold.ts';
import { EVENT_TYPES, RESULTS } from '../../core/audit.ts';
import { parseActorName } from '../../core/names.ts';
import { exportLog } from '../audit-export.ts';
import { followLog } from '../audit-tail.ts';
import type { Command, Flag, Invocation } from '../command.ts';
import { assertIncreasing } from '../entry-order.ts';
import { EXIT } from '../errors.ts';
import { readChoice, readFlag, readWholeNumber } from '../flag-values.ts';
import { toInstant } from '../plural.ts';
import { startProgress } from '../progress.ts';

/** Of entries: what stands after the dot of an event. */
const ACTIONS = [...new Set(EVENT_TYPES.map((type) => type.slice(type.indexOf('.') + 1)))];
const COLUMNS = ['seq', 'timestamp', 'event_type', 'agent_name', 'resource', 'result', 'reason'];

const FILTERS: readonly Flag[] = [
  {
    name: 'of',
    value: 'NAME',
    help: 'what this agent did; admin and service are names too; --agent is who asks',
    completes: 'agent',
  },
  {
    name: 'resource',
    value: 'GLOB',
    help: 'a path, with * for any run of characters and ? for one',
    completes: 'path',
  },
  { name: 'action', value: 'ACTION', help: 'such as retrieve', completes: ACTIONS },
  { name: 'event', value: 'TYPE', help: 'such as credential.retrieve', completes: EVENT_TYPES },
  { name: 'result', value: RESULTS.join('|'), help: 'only these', completes: RESULTS },
];

function readFilter(invocation: Invocation): AuditFilter {
  const given = {
    agent: readFlag(invocation, 'of', parseActorName),
    resource: invocation.flag('resource'),
    action: readChoice(invocation, 'action', ACTIONS),
    event_type: readChoice(invocation, 'event', EVENT_TYPES),
    result: readChoice(invocation, 'result', RESULTS),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}

const list: Command = {
  name: 'audit list',
  summary: 'Lists entries of the audit log, newest first',
  flags: [
    ...FILTERS,
    { name: 'since', value: 'TIME', help: 'ISO 8601, or back from now, such as 90m, 2h, 7d' },
    { name: 'until', value: 'TIME', help: 'as --since' },
    { name: 'limit', value: 'N', help: 'entries at most (default 100)' },
  ],
  examples: [{ line: 'leasehold audit list --result denied --since 1d', does: 'who was denied what since yesterday' }],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const [since, until] = [readFlag(invocation, 'since', toInstant), readFlag(invocation, 'until', toInstant)];
    const limit = readWholeNumber(invocation, 'limit') ?? 100;
    const filter = {
      ...readFilter(invocation),
      ...(since === null ? {} : { since }),
      ...(until === null ? {} : { until }),
    };
    const vault = invocation.connect();
    await invocation.output.records(
      await newest(vault, filter, limit, invocation.signal),
      COLUMNS,
      'There is no such entry.',
    );
    return EXIT.OK;
  },
};

const MOST_PAGES_OF_NOTHING_NEW = 100;

async function newest(vault: Leasehold, filter: AuditFilter, limit: number, signal: AbortSignal) {
  const entries: AuditEntry[] = [];
  let pagesOfNothingNew = 0;
  for (let [offset, wanted] = [0, Math.min(limit, MAX_PAGE_ROWS)]; ; wanted = MAX_PAGE_ROWS) {
    // Entries that came meanwhile would move all pages: they are left out by their time, and those of the same moment by their number.
    const until = entries[0]?.timestamp ?? filter.until;
    const page = { ...filter, ...(until === undefined ? {} : { until }), limit: wanted, offset };
    const { data } = await vault.audit.list(page, { signal });
    assertIncreasing(data.toReversed());
    const last = entries.at(-1)?.seq ?? Number.POSITIVE_INFINITY;
    const more = data.filter(({ seq }) => seq < last);
    entries.push(...more);
    if (data.length < wanted || entries.length >= limit) return entries.slice(0, limit);
    offset += data.length;
    if (more.length > 0) continue;
    pagesOfNothingNew += 1;
    if (pagesOfNothingNew > MOST_PAGES_OF_NOTHING_NEW)
      throw new LeaseholdError('INVALID_RESPONSE', 'the log has no end');
  }
}

const tail: Command = {
  name: 'audit tail',
  summary: 'Shows the last entries, and then each new one, until Ctrl-C',
  flags: [...FILTERS, { name: 'last', value: 'N', help: 'so many to begin with (default 10)' }],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const [filter, last] = [readFilter(invocation), readWholeNumber(invocation, 'last') ?? 10];
    await followLog(invocation, invocation.connect(), filter, last);
    return EXIT.OK;
  },
};

const PROGRESS_EVERY_MS = 500;

const verify: Command = {
  name: 'audit verify',
  summary: 'Verifies the whole chain: every entry is read and every link computed again',
  about: ['Ends with exit code 3 where the chain is broken.'],
  asksService: true,
  printsRecords: true,
  async run(invocation) {
    const { terminal, signal } = invocation;
    const vault = invocation.connect();
    const progress = startProgress(terminal, 'Verifying');
    const looking = setInterval(() => {
      vault.audit
        .readProgress({ signal })
        .then(({ entries_checked, entries_total }) => progress.show(entries_checked ?? 0, entries_total))
        // What can't be told is not shown.
        .catch(() => undefined);
    }, PROGRESS_EVERY_MS);
    try {
      const verification = await vault.audit.verify({ signal });
      progress.end();
      await invocation.output.record(verification);
      return verification.valid ? EXIT.OK : EXIT.NEGATIVE;
    } finally {
      clearInterval(looking);
      progress.end();
    }
  },
};

const exportEntries: Command = {
  name: 'audit export',
  summary: 'Writes every entry as JSON, a line each, oldest first',
  about: [
    'An auditor verifies it without the service: scripts/verify_audit.py, with the key that leasehold audit-key prints, and with the head record that --head writes.',
  ],
  flags: [
    {
      name: 'out',
      value: 'FILE',
      help: 'into this file, which must not be there yet, instead of standard output',
      completes: 'file',
    },
    {
      name: 'head',
      value: 'FILE',
      help: 'writes the head record too, by which a cut tail is found',
      completes: 'file',
    },
  ],
  asksService: true,
  async run(invocation) {
    await exportLog(invocation, invocation.connect());
    return EXIT.OK;
  },
};

export const AUDIT_COMMANDS: readonly Command[] = [list, tail, verify, exportEntries];
