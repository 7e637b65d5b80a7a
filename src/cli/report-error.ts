/** Prints the error of a failed command, one line with the problem and one with a hint, and chooses the exit code. */

import { LeaseholdError } from '../client/errors.ts';
import { OPERATOR_PREFIX } from '../core/names.ts';
import { ApiError } from '../engine/errors.ts';
import { StartupError, UsageError } from '../platform/errors.ts';
import { type FailedLease, LeaseAcquisitionError } from '../run/leases.ts';
import { ErrorWithHint } from './call-hints.ts';
import { Cancelled, Declined, EXIT, RemoteError } from './errors.ts';
import { escapeControls, escapeText } from './output/cells.ts';
import { mayBeAdministrator, type OwnIdentity, type Settings, titleOf } from './settings/settings.ts';
import { coloured, hasColours, printNotice, type Terminal } from './terminal.ts';

interface ErrorContext {
  readonly terminal: Terminal;
  /** First word of the command, such as `policy`. */
  readonly noun: string;
}

/** Prints the error and returns the exit code. */
export function reportError(context: ErrorContext, error: unknown, settings: Settings | null): number {
  const { terminal } = context;
  if (error instanceof Declined) {
    printNotice(terminal, error.message);
    return EXIT.NEGATIVE;
  }
  if (error instanceof UsageError) {
    const code = error instanceof Cancelled ? error.exitCode : EXIT.USAGE;
    // A usage error may contain several lines, one for each problem.
    return printError(terminal, escapeText(toSentence(error.message)), error.hint, code);
  }
  // Names and paths are validated by the server's own parsers, before any request.
  if (error instanceof ApiError || error instanceof StartupError)
    return printError(terminal, toLine(error.message), null, EXIT.USAGE);
  if (error instanceof RemoteError) return printError(terminal, toLine(error.message), error.hint, EXIT.ERROR);
  if (error instanceof LeaseAcquisitionError)
    return Math.max(...error.failures.map((failure) => reportError(context, withSubject(failure), settings)));
  if (error instanceof LeaseholdError) {
    const id = error.requestId === null ? '' : ` (${error.code}, request ${error.requestId})`;
    const hint = error instanceof ErrorWithHint ? error.hint : null;
    const code = exitCodeOf(error);
    const message = toLine(`${messageFor(error, settings)}${id}`);
    return printError(terminal, message, hint ?? approvalHint(error) ?? hintFor(error, settings, context), code);
  }
  // A file-system error: neither a bug nor a usage error.
  if (error instanceof Error && 'syscall' in error && 'code' in error) {
    const { path, syscall, code } = error as NodeJS.ErrnoException;
    return printError(terminal, toLine(`${path ?? syscall} cannot be used (${code})`), null, EXIT.ERROR);
  }
  return printUnexpected(terminal, error, settings);
}

/**
 * WHY one report for every other error: commands do not check each field of a response, so another program at the
 * address can cause one, just like a bug. A stack trace would help no user.
 */
function printUnexpected(terminal: Terminal, error: unknown, settings: Settings | null): number {
  const { name, message, stack = '' } = error instanceof Error ? error : new Error(String(error));
  const what = `${name}: ${message}${ownFrame(stack)}`;
  if (settings === null) return printError(terminal, toLine(`This is a bug: ${what}`), REPORT, EXIT.ERROR);
  const { value, source } = settings.address;
  const hint = `Check what answers at ${value} (from ${source}): leasehold doctor. If it is Leasehold: ${REPORT}`;
  return printError(terminal, toLine(`A response cannot be read, or this is a bug: ${what}`), hint, EXIT.ERROR);
}

const REPORT = 'report this line, with the output of leasehold --version and of the server at startup.';
const ROOT = new URL('../../', import.meta.url).href;

/** The source file and line of Leasehold in which the error arose, in parentheses. */
function ownFrame(stack: string): string {
  const files = stack.split(ROOT).slice(1);
  const [place] = /^[^\s)]+/.exec(files.find((file) => !file.startsWith('node_modules/')) ?? '') ?? [];
  return place === undefined ? '' : ` (${place.replace(/:\d+$/, '')})`;
}

function exitCodeOf(error: LeaseholdError): number {
  if (error.code === 'BAD_KEY' || error.code === 'BAD_OPTIONS') return EXIT.USAGE;
  return NOT_APPROVED.has(error.code) ? EXIT.NEGATIVE : EXIT.ERROR;
}

function withSubject({ wanted: { name, path }, error }: FailedLease): unknown {
  if (!(error instanceof LeaseholdError)) return error;
  return new ErrorWithHint(error, error instanceof ErrorWithHint ? error.hint : null, `${name} (${path}): `);
}

function printError(terminal: Terminal, message: string, hint: string | null, code: number): number {
  const name = hasColours(terminal, terminal.stderr) ? coloured(['red', 'bold'], 'leasehold:') : 'leasehold:';
  terminal.stderr.write(`${name} ${message}\n`);
  if (hint !== null) printNotice(terminal, `  ${hint}`);
  return code;
}

function toLine(message: string): string {
  return escapeControls(toSentence(message));
}

/** Ends the message with one period, but adds none before parentheses. */
function toSentence(message: string): string {
  const text = message.replace(/\.(?= \(|$)/, '');
  return /[?!]$/.test(text) ? text : `${text}.`;
}

/** The message for a user of the command; the server's own is for HTTP clients. A Unix socket has no host name. */
function messageFor({ code, message }: LeaseholdError, settings: Settings | null): string {
  const who = settings?.identity.value;
  if (who !== undefined && who.kind !== 'anonymous') {
    if (code === 'AUTH_FAILED' && who.kind !== 'token')
      return `Login failed: ${titleOf(who.name)} is not registered, or this is not its key`;
    if (code === 'UNAUTHENTICATED' || code === 'SESSION_EXPIRED') {
      if (isAdminToken(who)) return 'This administrator token is not valid; it may be from before the last startup';
      if (who.kind === 'session') return 'Your session has expired';
    }
  }
  const address = settings?.address.value ?? '';
  const text = message.replace(/ Log in at .*$/, '');
  return address.startsWith('unix:') ? text.replace('http://localhost', address) : text;
}

const NOT_APPROVED: ReadonlySet<string> = new Set([
  'APPROVAL_DENIED',
  'APPROVAL_TIMED_OUT',
  'APPROVAL_WITHDRAWN',
  'NO_APPROVER',
]);

/** The hint for an error about an approval; null for any other error. */
function approvalHint({ code, approvalId }: LeaseholdError): string | null {
  switch (code) {
    case 'APPROVAL_PENDING':
      return `Run the command again to continue waiting. An operator can run: leasehold approve ${approvalId}`;
    case 'APPROVAL_DENIED':
      return `To see the request and the answer: leasehold approve show ${approvalId}`;
    case 'APPROVAL_TIMED_OUT':
    case 'APPROVAL_WITHDRAWN':
      return 'Run the command again to ask again.';
    case 'NO_APPROVER':
      return 'An administrator can add one: leasehold operator add NAME --role approver';
    case 'APPROVAL_ENDED':
      return 'To list the pending approvals: leasehold approve list';
    default:
      return null;
  }
}

const LISTS: ReadonlyMap<string, string> = new Map([
  ['policy', 'To list the policies: leasehold policy list'],
  ['agent', 'To list the agents: leasehold agent list'],
  ['operator', 'To list the operators: leasehold operator list'],
  ['key', 'To list the key slots: leasehold key slot list'],
  ['lease', 'To list the leases of the last 7 days: leasehold lease list'],
]);

function hintFor({ code }: LeaseholdError, settings: Settings | null, { noun }: ErrorContext): string | null {
  const identity = settings?.identity;
  const who = identity?.value;
  switch (code) {
    case 'UNREACHABLE':
    case 'INVALID_RESPONSE':
      return `The address came from ${settings?.address.source ?? 'an unknown source'}. Check whether the server runs there: leasehold doctor`;
    case 'BAD_CERTIFICATE':
      return settings?.caFile
        ? `Only the certificate authorities in ${settings.caFile.value} are trusted (${settings.caFile.source}).`
        : 'If a private authority issued it, use --ca-file FILE or set LEASEHOLD_CA_FILE.';
    case 'NOT_FOUND':
      return LISTS.get(noun) ?? 'To list the credentials that you may list: leasehold list';
    case 'BAD_KEY':
      return who !== undefined && 'name' in who && who.name.startsWith(OPERATOR_PREFIX)
        ? 'Use --key-file FILE. To add an operator: leasehold operator add NAME'
        : 'Use --key-file FILE. To make a key and register it: leasehold agent add NAME';
    case 'VAULT_LOCKED':
      return 'To unlock it, on the machine of the server: leasehold unlock';
    case 'ACCESS_DENIED':
      if (who !== undefined && mayBeAdministrator(who)) return null;
      if (who !== undefined && 'name' in who && who.name.startsWith(OPERATOR_PREFIX))
        return `An operator with the role admin can change that: leasehold operator set, or a policy for ${who.name}.`;
      return 'This needs the administrator: omit --agent on the machine of the server, or use LEASEHOLD_TOKEN or leasehold login.';
    case 'UNAUTHENTICATED':
    case 'SESSION_EXPIRED':
      // The token was typed, so no setting caused the error.
      if (noun === 'login') return null;
      if (who?.kind === 'session') {
        const end = identity?.level === 'login' ? '. To use another identity: leasehold logout' : '';
        return `Run: leasehold login --${titleOf(who.name)}${end}`;
      }
      if (who?.kind === 'anonymous') return 'Use --agent NAME, --token-file FILE, or run `leasehold login`.';
      if (isAdminToken(who)) {
        return `The token came from ${identity?.source}. The server makes a new token at each startup; the current one is in daemon.token in its data directory.`;
      }
      return `The token came from ${identity?.source}.`;
    case 'AUTH_FAILED': {
      const kind = who !== undefined && 'name' in who && who.name.startsWith(OPERATOR_PREFIX) ? 'operator' : 'agent';
      return `The ${kind} came from ${identity?.source}. Check whether it is registered with leasehold ${kind} show, or use another key with --key-file.`;
    }
    default:
      return null;
  }
}

function isAdminToken(who: OwnIdentity | undefined): boolean {
  return who?.kind === 'token' && who.token.reveal().startsWith('lha_');
}
