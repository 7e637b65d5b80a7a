/** The terminal that a command runs in: its streams, what it was given in the environment, and whether a person looks at it. */
import type { Readable, Writable } from 'node:stream';
import { EXIT } from './errors.ts';
import { escapeControls } from './output/cells.ts';

/** A reader that has seen enough, or a terminal that was closed, is no mistake of ours. */
const GONE: ReadonlySet<string> = new Set(['EPIPE', 'EIO']);

export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where the caller stands. */
  readonly folder: string;
  /** The caller's; ours is stricter. */
  readonly umask: number;
  readonly challengeService: ChallengeService;
}

/** A nonce that only the running service of a data directory can answer. */
interface ServiceChallenge {
  readonly nonce: string;
  isAnsweredBy(proof: string | null): boolean;
}

/** Null where no service runs on the data directory. `address` is the one that the directory names. */
export type ChallengeService = (dataDir: string, address: string) => Promise<ServiceChallenge | null>;

export function processTerminal(umask: number, challengeService: ChallengeService): Terminal {
  const { stdin, stdout, stderr, env } = process;
  stdout.on('error', endWithoutOutput);
  stderr.on('error', () => undefined);
  return { stdin, stdout, stderr, environment: env, folder: process.cwd(), umask, challengeService };
}

function endWithoutOutput({ code = '' }: NodeJS.ErrnoException): void {
  if (GONE.has(code)) return;
  // ORDER: at once, so that nobody goes on with half of what was to be printed.
  process.stderr.write(`leasehold: standard output cannot be written (${code}).\n`);
  process.exit(EXIT.ERROR);
}

/** For a command that has to go on, and looks at the errors of standard output itself: one that began what it must end. */
export function ignoreBrokenPipe({ stdout }: Terminal): void {
  stdout.on('error', () => undefined).off('error', endWithoutOutput);
}

/** SOURCE: no-color.org */
export function hasColours({ environment }: Terminal, stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}

/** Whether somebody is there to answer a question. */
export function canAsk({ stdin, stderr }: Terminal): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/** For people, beside what the command prints; it may hold what others wrote, which must not steer a terminal. */
export function printNotice({ stderr }: Terminal, line: string): void {
  stderr.write(`${escapeControls(line)}\n`);
}
