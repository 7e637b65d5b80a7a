/** Prints on standard error that a command waits for an approval, and how an operator can answer. */
import type { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import type { Settings } from './settings/settings.ts';
import { printNotice, type Terminal } from './terminal.ts';

/** WHY not when the server returns the pending approval, after 25 s: until then the command would seem to hang. */
const NOTICE_DELAY_MS = 1500;

export class ApprovalNotices {
  readonly #terminal: Terminal;
  readonly #announced = new Set<string>();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  announce(approvalId: string): void {
    if (this.#announced.has(approvalId)) return;
    this.#announced.add(approvalId);
    const line = `waiting for approval (approval:${approvalId}); an operator can run: leasehold approve ${approvalId}`;
    printNotice(this.#terminal, `leasehold: ${line}`);
  }
}

interface Waiting {
  readonly settings: Settings;
  readonly approvalNotices: ApprovalNotices;
  connect(): Leasehold;
}

interface Subject {
  readonly action: string;
  readonly path: string;
}

/**
 * Checks once whether the call in progress waits for an approval, and announces it. Returns a function that stops the
 * check.
 */
export function announceApproval({ settings, approvalNotices, connect }: Waiting, subject: Subject): () => void {
  const who = settings.identity.value;
  // A token may be the administrator's, which sees the approvals of all agents.
  if (who.kind !== 'agent' && who.kind !== 'session') return () => undefined;
  const ended = new AbortController();
  const look = async (): Promise<void> => {
    const { data } = await connect().approvals.list({ status: 'pending', limit: 100 }, { signal: ended.signal });
    const own = data.find(({ agent_name, action, path }) => {
      return agent_name === who.name && action === subject.action && path === subject.path;
    });
    if (own !== undefined && !ended.signal.aborted) approvalNotices.announce(own.approval_id);
  };
  // A call that returns as pending announces the approval too.
  const timer = setTimeout(() => void look().catch(() => undefined), NOTICE_DELAY_MS);
  return () => {
    clearTimeout(timer);
    ended.abort();
  };
}

const REFUSALS: ReadonlySet<string> = new Set([
  'APPROVAL_DENIED',
  'APPROVAL_TIMED_OUT',
  'APPROVAL_WITHDRAWN',
  'NO_APPROVER',
]);

export function isWithoutApproval({ code }: LeaseholdError): boolean {
  return REFUSALS.has(code);
}

/** The hint for an error about an approval; null for any other error. */
export function approvalHint({ code, approvalId }: LeaseholdError): string | null {
  switch (code) {
    case 'APPROVAL_PENDING':
      return `Run the command again to go on waiting. An operator can run: leasehold approve ${approvalId}`;
    case 'APPROVAL_DENIED':
      return `To see the request and the answer: leasehold approve show ${approvalId}`;
    case 'APPROVAL_TIMED_OUT':
    case 'APPROVAL_WITHDRAWN':
      return 'Run the command again to ask again.';
    case 'NO_APPROVER':
      return 'An administrator can add one: leasehold operator add NAME --role approver';
    case 'APPROVAL_ENDED':
      return 'To see what waits for an answer: leasehold approve list';
    default:
      return null;
  }
}
