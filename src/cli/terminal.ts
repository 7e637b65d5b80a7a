/** The streams, environment and working directory that a command runs with. */
import type { Readable, Writable } from 'node:stream';
import { styleText } from 'node:util';
import { EXIT } from './errors.ts';
import { escapeControls } from './output/cells.ts';

/** Error codes of a write whose reader has closed the pipe or terminal. */
const READER_CLOSED_CODES: ReadonlySet<string> = new Set(['EPIPE', 'EIO']);

export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean };
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly stderr: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDirectory: string;
  /** The caller's umask; this process uses a stricter one. */
  readonly umask: number;
  readonly challengeServer: ChallengeServer;
}

/** A nonce that only the server of a data directory can answer. */
interface ServerChallenge {
  readonly nonce: string;
  isAnsweredBy(proof: string | null): boolean;
}

/** Returns null when no server has the data directory open. `address` is the URL in its address file. */
export type ChallengeServer = (dataDir: string, address: string) => Promise<ServerChallenge | null>;

export function processTerminal(umask: number, challengeServer: ChallengeServer): Terminal {
  const { stdin, stdout, stderr, env } = process;
  stdout.on('error', exitOnWriteError);
  stderr.on('error', () => undefined);
  return { stdin, stdout, stderr, environment: env, workingDirectory: process.cwd(), umask, challengeServer };
}

function exitOnWriteError({ code = '' }: NodeJS.ErrnoException): void {
  if (READER_CLOSED_CODES.has(code)) return;
  // ORDER: at once, because the output is incomplete.
  process.stderr.write(`leasehold: standard output cannot be written (${code}).\n`);
  process.exit(EXIT.ERROR);
}

/** Ignores a closed pipe. Subcommands that must clean up call it and handle errors of standard output themselves. */
export function ignoreBrokenPipe({ stdout }: Terminal): void {
  stdout.on('error', () => undefined).off('error', exitOnWriteError);
}

/** SOURCE: no-color.org */
export function hasColours({ environment }: Terminal, stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && (environment['NO_COLOR'] ?? '') === '' && environment['TERM'] !== 'dumb';
}

/**
 * Colours text for a stream on which `hasColours` is true. Without `validateStream: false`, Node would check standard
 * output instead.
 */
export function coloured(format: Parameters<typeof styleText>[0], text: string): string {
  return styleText(format, text, { validateStream: false });
}

export function isInteractive({ stdin, stderr }: Terminal): boolean {
  return stdin.isTTY === true && stderr.isTTY === true;
}

/** Prints a line on standard error. Escapes control characters, because the line may contain untrusted text. */
export function printNotice({ stderr }: Terminal, line: string): void {
  stderr.write(`${escapeControls(line)}\n`);
}
