/** What a command says when it fails, and how it ends: one line that says what is wrong, and one that says how to mend it. */
import { styleText } from 'node:util';
import { LeaseholdError } from '../client/errors.ts';
import { Fault } from '../core/fault.ts';
import { StartError } from '../daemon/files.ts';
import { Hinted } from './denials.ts';
import { EXIT, Failure, Mistake } from './mistake.ts';
import { harmless } from './output/cells.ts';
import type { Settings } from './settings/settings.ts';
import { hasColours, say, type Terminal } from './terminal.ts';

/** Resolves an error to an exit code, after it was told. Throws on what is a bug. */
export function fail(terminal: Terminal, error: unknown, settings: Settings | null): number {
  // Mistakes are worded here, and there may be several: a line each.
  if (error instanceof Mistake) {
    return tell(terminal, toSentence(error.message).split('\n').map(harmless).join('\n'), error.hint, EXIT.MISTAKE);
  }
  // The grammar of names and paths is the service's own: what breaks it is found before any call.
  if (error instanceof Fault || error instanceof StartError)
    return tell(terminal, toLine(error.message), null, EXIT.MISTAKE);
  if (error instanceof Failure) return tell(terminal, toLine(error.message), error.hint, EXIT.ERROR);
  if (error instanceof Hinted) {
    return tell(terminal, toLine(`${error.message}${withId(error.error)}`), error.hint, EXIT.ERROR);
  }
  if (error instanceof LeaseholdError) {
    const code = error.code === 'BAD_KEY' || error.code === 'BAD_OPTIONS' ? EXIT.MISTAKE : EXIT.ERROR;
    return tell(terminal, toLine(`${worded(error, settings)}${withId(error)}`), hintFor(error, settings), code);
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
  if (hint !== null) say(terminal, `  ${hint}`);
  return code;
}

function toLine(message: string): string {
  return harmless(toSentence(message));
}

/** One stop at its end, and none before what stands in brackets. */
function toSentence(message: string): string {
  const text = message.replace(/\.(?= \(|$)/, '');
  return /[?!]$/.test(text) ? text : `${text}.`;
}

/** A socket has no host: the client names one that is none. */
function worded({ message }: LeaseholdError, settings: Settings | null): string {
  const address = settings?.address.value ?? '';
  return address.startsWith('unix:') ? message.replace('http://localhost', address) : message;
}

function withId({ code, requestId }: LeaseholdError): string {
  return requestId === null ? '' : ` (${code}, request ${requestId})`;
}

function hintFor({ code }: LeaseholdError, settings: Settings | null): string | null {
  const identity = settings?.identity;
  switch (code) {
    case 'NO_ANSWER':
    case 'BAD_ANSWER':
      return `The address is from ${settings?.address.by ?? 'nowhere'}. Does the service run there? leasehold doctor looks.`;
    case 'BAD_CERTIFICATE':
      return settings?.caFile
        ? `Only the authorities in ${settings.caFile.value} are trusted (${settings.caFile.by}).`
        : 'If it is from a private authority, give its certificate: --ca-file FILE, or LEASEHOLD_CA_FILE.';
    case 'NOT_FOUND':
      return 'leasehold list shows what there is, as far as you may see it.';
    case 'BAD_KEY':
      return 'Give --key-file FILE; leasehold agent add NAME makes a key, and registers it.';
    case 'ACCESS_DENIED':
      return 'Ask as the administrator: on the machine of the service without --agent, elsewhere with LEASEHOLD_TOKEN or leasehold login.';
    case 'UNAUTHENTICATED':
    case 'SESSION_EXPIRED':
      if (identity?.value.kind === 'session' && identity.level === 'login')
        return `The login as agent ${identity.value.name} has ended: leasehold login --agent ${identity.value.name} begins a new one, leasehold logout forgets it.`;
      return identity?.value.kind === 'nobody'
        ? 'Nobody was asking: give LEASEHOLD_TOKEN or --agent, or leasehold login.'
        : `What was shown is from ${identity?.by}. leasehold doctor tells more.`;
    case 'AUTH_FAILED':
      return `The agent is from ${identity?.by}. Is it registered, and is the key its own? leasehold doctor looks.`;
    default:
      return null;
  }
}
