/** Prompts on standard error, so that standard output contains only results. */
import { createInterface, type Interface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { FlagValues } from '../flags/flag.ts';
import { UsageError } from '../platform/errors.ts';
import { Secret } from '../vault/credentials/credential.ts';
import type { CONFIRMATION_FLAGS } from './command.ts';
import { Cancelled, Declined } from './errors.ts';
import { escapeControls } from './output/cells.ts';
import { isInteractive, printNotice, type Terminal } from './terminal.ts';

export interface Question {
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

const USE_YES = 'Use --yes to confirm, or --dry-run to see the changes.';

/** Asks a yes/no question; the default is no. @throws UsageError when the terminal is not interactive, Cancelled */
export async function confirm(question: Question, text: string, hint = USE_YES): Promise<boolean> {
  if (!isInteractive(question.terminal)) throw new UsageError(`${text} This needs confirmation on a terminal`, hint);
  return /^y(?:es)?$/i.test((await askLine(question, `${text} [y/N] `)).trim());
}

/** Reads a line, which is echoed. @throws UsageError when the terminal is not interactive, Cancelled */
export async function askLine(question: Question, text: string): Promise<string> {
  const { stdin, stderr } = question.terminal;
  if (!isInteractive(question.terminal)) throw new UsageError('cannot prompt without a terminal');
  using lines = createInterface({ input: stdin, output: stderr });
  return await readLine(lines, question, text);
}

async function readLine(lines: Interface, { terminal, signal }: Question, text: string): Promise<string> {
  try {
    return await lines.question(escapeControls(text), { signal });
  } catch (error) {
    // Here Ctrl-C and Ctrl-D arrive as keys, not as signals.
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    terminal.stderr.write('\n');
    throw signal.aborted ? signal.reason : new Cancelled();
  }
}

export type Confirmation = FlagValues<typeof CONFIRMATION_FLAGS>;

/** @throws Declined, and the errors of `confirm` */
export async function requireConfirmation(question: Question, text: string, hint = USE_YES): Promise<void> {
  if (!(await confirm(question, text, hint))) throw new Declined();
}

/**
 * Returns false for `--dry-run`, which takes precedence over `--yes`. @throws Declined, UsageError when the terminal is
 * not interactive
 */
export async function confirmDestructive(
  question: Question,
  flags: Confirmation,
  describe: () => Promise<string>,
  text: string,
): Promise<boolean> {
  if (flags['dry-run']) printNotice(question.terminal, `${await describe()} Nothing was done.`);
  else if (!flags.yes) await requireConfirmation(question, `${await describe()} ${text}`);
  return !flags['dry-run'];
}

/** Input that follows Enter within this time was pasted. */
const MAX_PASTE_GAP_MS = 60;
const SEVERAL_LINES = 'Nothing was stored. For a value of several lines use - for standard input, or @FILE.';

/** Enter, Backspace, Ctrl-C, Ctrl-D and Ctrl-U. */
const LINE_KEYS: ReadonlySet<string> = new Set(['\r', '\n', '\b', '\x7f', '\x03', '\x04', '\x15']);

/** Reads a line without echo. @throws UsageError when the terminal is not interactive, Cancelled */
export async function askHidden(question: Question, text: string): Promise<Secret> {
  const { stdin, stderr } = question.terminal;
  if (!isInteractive(question.terminal))
    throw new UsageError(`${text}: cannot prompt without a terminal`, 'Use - to read it from standard input.');
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  // ORDER: turns echo off before the prompt is printed, so that nothing typed after it is echoed.
  using lines = createInterface({ input: stdin, output: silent, terminal: true, historySize: 0 });
  let [pieces, more] = [0, 0];
  let hasControl = false;
  const count = (piece: Buffer | string): void => {
    pieces++;
    hasControl ||= [...String(piece)].some((key) => /\p{Cc}/u.test(key) && !LINE_KEYS.has(key));
  };
  stdin.on('data', count);
  lines.on('line', () => more++);
  stderr.write(`${escapeControls(text)}: `);
  try {
    const typed = await readLine(lines, question, '');
    // ORDER: echo stays off until input pauses. Otherwise the rest of a paste would be echoed or answer the next
    // prompt.
    for (let seen = -1; seen !== pieces; await sleep(MAX_PASTE_GAP_MS)) seen = pieces;
    stderr.write('\n');
    if (more > 0 || lines.line !== '')
      throw new UsageError(`${text}: more than one line was typed or pasted`, SEVERAL_LINES);
    // WHY an error: readline interprets them as keys, so that a value other than the pasted one would be stored.
    if (hasControl) throw new UsageError(`${text}: a control character was typed or pasted`, SEVERAL_LINES);
    return new Secret(typed);
  } finally {
    stdin.off('data', count);
  }
}
