/**
 * Awaits the calls of commands. While a call waits for an approval, prints how an operator can answer. Adds a hint to a
 * denial, and to a change that conflicts with the change of another caller.
 */
import { LeaseholdError } from '../client/errors.ts';
import { quoteWord } from '../platform/installation.ts';
import type { ChangedKind } from '../vault/audit/audit-entry.ts';
import type { Invocation } from './command.ts';
import { printNotice, type Terminal } from './terminal.ts';

/** An error of the server with a hint. Its message begins with the path or name that it concerns. */
export class ErrorWithHint extends LeaseholdError {
  readonly hint: string | null;

  constructor({ code, message, ...details }: LeaseholdError, hint: string | null, subject = '') {
    super(code, subject + message, details);
    this.hint = hint;
  }
}

interface Attempt {
  readonly action: string;
  readonly path: string;
  readonly request?: { readonly method: string; readonly url: string };
}

/** WHY not when the server returns the pending approval, after 25 s: until then the command would seem to hang. */
const NOTICE_DELAY_MS = 1500;

/** Returns a function that announces each approval once. */
export function approvalAnnouncer(terminal: Terminal): (approvalId: string) => void {
  const announced = new Set<string>();
  return (approvalId) => {
    if (announced.has(approvalId)) return;
    announced.add(approvalId);
    const line = `waiting for approval (approval:${approvalId}); an operator can run: leasehold approve ${approvalId}`;
    printNotice(terminal, `leasehold: ${line}`);
  };
}

/**
 * Checks once whether the call in progress waits for an approval, and announces it. Returns a function that stops the
 * check.
 */
function watchForApproval({ settings, announceApproval, connect }: Invocation, subject: Attempt): () => void {
  const who = settings.identity.value;
  // A token may be the administrator's, which sees the approvals of all agents.
  if (who.kind !== 'agent' && who.kind !== 'session') return () => undefined;
  const ended = new AbortController();
  const look = async (): Promise<void> => {
    const { data } = await connect().approvals.list({ status: 'pending', limit: 100 }, { signal: ended.signal });
    const own = data.find(({ agent_name, action, path }) => {
      return agent_name === who.name && action === subject.action && path === subject.path;
    });
    if (own !== undefined && !ended.signal.aborted) announceApproval(own.approval_id);
  };
  // A call that returns as pending announces the approval too.
  const timer = setTimeout(() => void look().catch(() => undefined), NOTICE_DELAY_MS);
  return () => {
    clearTimeout(timer);
    ended.abort();
  };
}

/**
 * Awaits `work`, and announces an approval that it waits for. If access is denied, the hint names the command that
 * explains it. @throws ErrorWithHint, LeaseholdError
 */
export async function withDenialHint<T>(invocation: Invocation, attempt: Attempt, work: Promise<T>): Promise<T> {
  const endWatch = watchForApproval(invocation, attempt);
  try {
    return await work.finally(endWatch);
  } catch (error) {
    const who = invocation.settings.identity.value;
    if (!(error instanceof LeaseholdError) || error.code !== 'ACCESS_DENIED') throw error;
    if (who.kind !== 'agent' && who.kind !== 'session') throw error;
    // WHY without the query: targets do not depend on it, and it may be confidential.
    const { action, path, request } = attempt;
    const [url] = request?.url.split('?') ?? [];
    const exactly = request === undefined ? '' : ` --request ${quoteWord(`${request.method} ${url}`)}`;
    const command = `leasehold policy explain ${who.name} ${action} ${quoteWord(path)}${exactly}`;
    throw new ErrorWithHint(error, `An administrator can see what would grant it: ${command}`);
  }
}

/**
 * Awaits the change of a resource, which fails if it was changed after the command read it. The hint names the other
 * change. @throws ErrorWithHint, LeaseholdError
 */
export async function withConflictHint<T>(
  invocation: Invocation,
  kind: ChangedKind,
  name: string,
  work: Promise<T>,
): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof LeaseholdError) || error.code !== 'PRECONDITION_FAILED') throw error;
    // An agent may not read the audit log.
    const change = await invocation
      .connect()
      .audit.lastChange(kind, name, invocation)
      .catch(() => null);
    const who = change === null ? 'Another request' : change.agent_name;
    const what = kind === 'targets' ? `the targets of ${name}` : `${kind} ${name}`;
    const when = change === null ? '' : ` at ${change.timestamp}`;
    const { code, status, requestId } = error;
    const told = new LeaseholdError(code, `${who} changed ${what}${when} after this command read it`, {
      status,
      requestId,
    });
    throw new ErrorWithHint(told, 'The command changed nothing there. Run it again to see the current state.');
  }
}
