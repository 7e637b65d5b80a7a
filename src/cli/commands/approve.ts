/** The `approve` commands, with which operators answer requests that need an approval. */
import { isReadable } from '../../client/approvals.ts';
import type { Approval } from '../../client/types.ts';
import { choice, text, toggle, withoutNulls } from '../../flags/flag.ts';
import { UsageError } from '../../platform/errors.ts';
import { APPROVAL_STATUSES } from '../../vault/approvals/approval.ts';
import { approvalCard, promptFor } from '../approvals/card.ts';
import { KeyPresses } from '../approvals/key-presses.ts';
import { ApprovalWatch, describeAnswer, type GivenAnswer, sendAnswer } from '../approvals/watch.ts';
import { type Command, defineCommand, type Invocation } from '../command.ts';
import { Declined } from '../errors.ts';
import { askLine } from '../prompt.ts';
import { printNotice } from '../terminal.ts';

const ID = { name: 'ID', help: 'id of the approval', count: 'one' } as const;
const COLUMNS = ['approval_id', 'status', 'agent_name', 'action', 'path', 'requested_at', 'host', 'purpose'];
const UNREADABLE = 'Not approved: the request can no longer be read. Deny it, and the agent can ask again.';

/** An id as messages and the audit log print it, `approval:<id>`, or the id alone. */
function idOf(given: string): string {
  return given.replace(/^approval:/, '');
}

async function readCard(invocation: Invocation, id: string) {
  const { terminal, signal } = invocation;
  const vault = invocation.connect();
  const aheadMs = -(await vault.clockDifference({ signal }));
  const approval = await vault.approvals.read(id, { signal });
  const columns = terminal.stderr.columns ?? 80;
  return { approval, card: approvalCard([approval], { columns, now: Date.now() + aheadMs }) };
}

/** @throws Declined */
async function askForAnswer(invocation: Invocation, approval: Approval, card: string): Promise<GivenAnswer> {
  using keys = new KeyPresses(invocation.terminal);
  const { prompt, allowed } = promptFor([approval], ['d', 'q']);
  const key = await keys.ask(`${card}\n`, prompt, allowed, invocation.signal);
  if (key === 'q') throw new Declined();
  if (key === 'a') return { isApproved: true, reason: null };
  return { isApproved: false, reason: await keys.suspend(() => askReason(invocation)) };
}

async function askReason(invocation: Invocation): Promise<string | null> {
  return (await askLine(invocation, 'Reason, for the agent and the audit log (Enter for none): ')).trim() || null;
}

const approve = defineCommand({
  name: 'approve',
  about: [
    'Without ID, shows each request as it arrives, exactly as it would be sent, and takes one key for its answer: a approves, d denies, s skips, q quits. What is typed before a request is shown has no effect. Requests of an agent to the same endpoint within 2 seconds are shown together, and one key answers all of them.',
    'With ID, shows that request and takes the same keys. --yes approves it and --deny denies it without asking, as scripts need it. The exit code is 3 if nothing was answered.',
    'Only operators with the role approver or admin can answer, and none can answer its own request. The administrator’s token can too; once there are operators, that leaves a separate entry in the audit log.',
  ],
  arguments: [{ ...ID, count: 'optional' }],
  flags: {
    yes: toggle('approve ID without asking', { short: 'y' }),
    deny: toggle('deny ID'),
    reason: text('TEXT', 'reason of the denial, for the agent and the audit log'),
  },
  examples: {
    'leasehold approve': 'watch, and answer each request with one key',
    'leasehold approve ID --deny --reason "wrong account"': 'deny one request',
  },
  async run(invocation, { yes, deny, reason }, given) {
    if (yes && deny) throw new UsageError('give --yes or --deny, not both');
    if (reason !== null && !deny) throw new UsageError('--reason requires --deny');
    if (given === null) {
      if (yes || deny) throw new UsageError('--yes and --deny require an ID', 'leasehold approve list');
      const { terminal, signal } = invocation;
      const vault = invocation.connect();
      return ApprovalWatch.run({ terminal, signal, vault, askReason: () => askReason(invocation) });
    }
    const { approvals } = invocation.connect();
    const { signal, terminal, output } = invocation;
    const id = idOf(given);
    const { approval, card } = await readCard(invocation, id);
    if (yes && !isReadable(approval)) throw new Declined(UNREADABLE);
    const answer = yes || deny ? { isApproved: yes, reason } : await askForAnswer(invocation, approval, card);
    const answered = await sendAnswer(approvals, approval, answer, signal);
    if (output.isTable) printNotice(terminal, describeAnswer(answered));
    else await output.record(answered);
  },
});

const listAll = defineCommand({
  name: 'approve list',
  about: ['Agents see their own. A request and its answer stay listed for a week.'],
  flags: {
    status: choice('STATUS', APPROVAL_STATUSES, `only those that are ${APPROVAL_STATUSES.join(', ')}`),
    'agent-name': text('NAME', 'only those of this agent'),
  },
  async run(invocation, { status, 'agent-name': agent }) {
    const filter = withoutNulls({ status, agent });
    const { approvals } = invocation.connect();
    const rows = await Array.fromAsync(approvals.listAll(filter, invocation));
    await invocation.output.records(rows, COLUMNS, 'No requests for approval.');
  },
});

const show = defineCommand({
  name: 'approve show',
  arguments: [ID],
  async run(invocation, _flags, given) {
    const { approval, card } = await readCard(invocation, idOf(given));
    if (invocation.output.isTable) invocation.output.text(card.trimEnd());
    else await invocation.output.record(approval);
  },
});

const withdraw = defineCommand({
  name: 'approve withdraw',
  about: ['An agent withdraws its own requests, an operator any.'],
  arguments: [ID],
  printsNoRecords: true,
  async run(invocation, _flags, given) {
    const id = idOf(given);
    await invocation.connect().approvals.withdraw(id, invocation);
    printNotice(invocation.terminal, `Withdrew approval:${id}.`);
  },
});

export const COMMANDS: readonly Command[] = [approve, listAll, show, withdraw];
