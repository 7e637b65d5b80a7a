/** What a command says when it fails, and how it ends: one line that says what is wrong, and one that says how to mend it. */

import { styleText } from 'node:util';
import { LeaseholdError } from '../client/errors.ts';
import { ApiError } from '../core/errors.ts';
import { StartupError, UsageError } from '../platform/errors.ts';
import { Cancelled, EXIT, RemoteError } from './errors.ts';
import { ErrorWithHint } from './explain-denial.ts';
import { escapeControls } from './output/cells.ts';
import { type Identity, mayBeAdministrator, type Settings } from './settings/settings.ts';
import { hasColours, printNotice, type Terminal } from './terminal.ts';

/** What the message is about, and where it is printed. */
interface Told {
  readonly terminal: Terminal;
  /** Of the command that was called: `policy`, `agent`, `lease`; any other word otherwise. */
  readonly noun: string;
}

/** Resolves an error to an exit code, after it was told. Throws on what is a bug. */
export function fail(told: Told, error: unknown, settings: Settings | null): number {
  const { terminal } = told;
  if (error instanceof Cancelled) return tell(terminal, toLine(error.message), null, error.exitCode);
  // Mistakes are worded here, and there may be several: a line each.
  if (error instanceof UsageError) {
    return tell(terminal, toSentence(error.message).split('\n').map(escapeControls).join('\n'), error.hint, EXIT.USAGE);
  }
  // The grammar of names and paths is the service's own: what breaks it is found before any call.
  if (error instanceof ApiError || error instanceof StartupError)
    return tell(terminal, toLine(error.message), null, EXIT.USAGE);
  if (error instanceof RemoteError) return tell(terminal, toLine(error.message), error.hint, EXIT.ERROR);
  if (error instanceof ErrorWithHint) {
    return tell(terminal, toLine(`${error.message}${withId(error.error)}`), error.hint, EXIT.ERROR);
  }
  if (error instanceof LeaseholdError) {
    const code = error.code === 'BAD_KEY' || error.code === 'BAD_OPTIONS' ? EXIT.USAGE : EXIT.ERROR;
    return tell(terminal, toLine(`${worded(error, settings)}${withId(error)}`), hintFor(error, settings, told), code);
  }
  if (isOfSystem(error))
    return tell(terminal, toLine(`${error.path ?? error.syscall} cannot be used (${error.code})`), null, EXIT.ERROR);
  throw error;
}

/** A file that cannot be made or written, wherever it was: a full disk is no mistake of ours, and none of whoever typed. */
function isOfSystem(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error && 'code' in error;
}

function tell(terminal: Terminal, message: string, hint: string | null, code: number): number {
  const name = hasColours(terminal, terminal.stderr) ? styleText(['red', 'bold'], 'leasehold:') : 'leasehold:';
  terminal.stderr.write(`${name} ${message}\n`);
  if (hint !== null) printNotice(terminal, `  ${hint}`);
  return code;
}

function toLine(message: string): string {
  return escapeControls(toSentence(message));
}

/** One stop at its end, and none before what stands in brackets. */
function toSentence(message: string): string {
  const text = message.replace(/\.(?= \(|$)/, '');
  return /[?!]$/.test(text) ? text : `${text}.`;
}

/** In the words of this command: the service's are for who calls it over HTTP. A socket has no host, so the client names localhost. */
function worded({ code, message }: LeaseholdError, settings: Settings | null): string {
  const who = settings?.identity.value;
  if (who !== undefined && who.kind !== 'nobody') {
    if (code === 'AUTH_FAILED' && who.kind !== 'token')
      return `Login failed: agent ${who.name} is not registered, or this is not its key`;
    if (code === 'UNAUTHENTICATED' || code === 'SESSION_EXPIRED') {
      if (isAdminToken(who)) return 'This administrator token is not valid; it may be from an earlier start';
      return who.kind === 'session' ? 'Your session has expired' : message.replace(/ Log in at .*$/, '');
    }
  }
  const address = settings?.address.value ?? '';
  return address.startsWith('unix:') ? message.replace('http://localhost', address) : message;
}

function withId({ code, requestId }: LeaseholdError): string {
  return requestId === null ? '' : ` (${code}, request ${requestId})`;
}

/** Where each kind of thing is listed; what is not here is a credential. */
const LISTS: ReadonlyMap<string, string> = new Map([
  ['policy', 'leasehold policy list shows the policies.'],
  ['agent', 'leasehold agent list shows the agents.'],
  ['lease', 'leasehold lease list shows the leases; ended ones for 7 days.'],
]);

/** For a user of HashiCorp Vault, whose variable says nothing here. Null where it is not set, or an address was given. */
export function vaultHint({ environment }: Terminal, address: Settings['address'] | undefined): string | null {
  const name = ['VAULT_ADDR', 'BAO_ADDR'].find((each) => environment[each]);
  if (name === undefined || address === undefined || address.level !== 'default') return null;
  return `${name} is the address of another vault and is not used here. Set LEASEHOLD_ADDR, or give --address URL.`;
}

function hintFor({ code }: LeaseholdError, settings: Settings | null, { noun, terminal }: Told): string | null {
  const identity = settings?.identity;
  const who = identity?.value;
  switch (code) {
    case 'UNREACHABLE':
    case 'INVALID_RESPONSE':
      return (
        vaultHint(terminal, settings?.address) ??
        `The address is from ${settings?.address.source ?? 'nowhere'}. Does the service run there? leasehold doctor looks.`
      );
    case 'BAD_CERTIFICATE':
      return settings?.caFile
        ? `Only the authorities in ${settings.caFile.value} are trusted (${settings.caFile.source}).`
        : 'If it is from a private authority, give its certificate: --ca-file FILE, or LEASEHOLD_CA_FILE.';
    case 'NOT_FOUND':
      return LISTS.get(noun) ?? 'leasehold list shows the credentials that you may list.';
    case 'BAD_KEY':
      return 'Give --key-file FILE; leasehold agent add NAME makes a key, and registers it.';
    case 'ACCESS_DENIED':
      if (who !== undefined && mayBeAdministrator(who)) return null;
      return 'Ask as the administrator: on the machine of the service without --agent, elsewhere with LEASEHOLD_TOKEN or leasehold login.';
    case 'UNAUTHENTICATED':
    case 'SESSION_EXPIRED':
      // The token that was typed, and none of the settings.
      if (noun === 'login') return null;
      if (who?.kind === 'session') {
        const end = identity?.level === 'login' ? '. leasehold logout ends acting as this agent' : '';
        return `Run: leasehold login --agent ${who.name}${end}`;
      }
      if (who?.kind === 'nobody') return 'Use --agent NAME, --token-file FILE, or run `leasehold login`.';
      if (isAdminToken(who)) {
        return `The token came from ${identity?.source}. Each start of the service makes a new one; the current one is in daemon.token in its data directory.`;
      }
      return `The token came from ${identity?.source}.`;
    case 'AUTH_FAILED':
      return `The agent came from ${identity?.source}. leasehold agent show tells whether it is registered; --key-file gives another key.`;
    default:
      return null;
  }
}

function isAdminToken(who: Identity | undefined): boolean {
  return who?.kind === 'token' && who.token.reveal().startsWith('lha_');
}
