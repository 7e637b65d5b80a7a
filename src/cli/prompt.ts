/** Prompts on standard error, so that standard output contains only results. */

import { createInterface } from 'node:readline/promises';
import { Secret } from '../core/secret.ts';
import { UsageError } from '../platform/errors.ts';
import { Cancelled, Declined } from './errors.ts';
import { isInteractive, printNotice, type Terminal } from './terminal.ts';

export interface Question {
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Asks a yes/no question; the default is no. @throws UsageError when the terminal is not interactive, Cancelled */
export async function confirm({ terminal, signal }: Question, text: string): Promise<boolean> {
  if (!isInteractive(terminal))
    throw new UsageError(
      `${text} This needs confirmation on a terminal`,
      'Use --yes to confirm, or --dry-run to see the changes.',
    );
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr });
  try {
    return /^y(?:es)?$/i.test((await lines.question(`${text} [y/N] `, { signal })).trim());
  } catch (error) {
    // Here Ctrl-C and Ctrl-D arrive as keys, not as signals.
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    terminal.stderr.write('\n');
    throw signal.aborted ? signal.reason : new Cancelled();
  } finally {
    lines.close();
  }
}

/** The flags of a command that asks for confirmation. */
export interface Confirmation {
  readonly yes: boolean;
  readonly 'dry-run': boolean;
}

/** @throws Declined, and what `confirm` throws */
export async function requireConfirmation(question: Question, text: string): Promise<void> {
  if (!(await confirm(question, text))) throw new Declined();
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

const ENTER = /[\r\n]/;
/** Input that follows Enter within this time was pasted. */
const MAX_PASTE_GAP_MS = 60;
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const CTRL_U = '\u0015';
const BACKSPACES: ReadonlySet<string> = new Set(['\b', '\u007f']);

const SEVERAL_LINES = 'Nothing was stored. For a value of several lines use - for standard input, or @FILE.';

/** Reads a line without echo. @throws UsageError when the terminal is not interactive, Cancelled */
export async function askHidden({ terminal, signal }: Question, text: string): Promise<Secret> {
  const { stdin, stderr } = terminal;
  if (!isInteractive(terminal) || !('setRawMode' in stdin))
    throw new UsageError(`${text}: cannot prompt without a terminal`, 'Use - to read it from standard input.');
  const input = stdin as typeof process.stdin;
  // ORDER: before the prompt, so that nothing typed after it is echoed.
  input.setRawMode(true);
  input.setEncoding('utf8');
  stderr.write(`${text}: `);
  try {
    return await new Promise((resolve, reject) => {
      let typed = '';
      let timer: NodeJS.Timeout | null = null;
      let isMore = false;
      // ORDER: echo stays off until input pauses. Otherwise the rest of a paste would be echoed or answer the next
      // prompt.
      const finish = (): void => {
        if (isMore) reject(new UsageError(`${text}: more than one line was typed or pasted`, SEVERAL_LINES));
        else resolve(new Secret(typed));
      };
      const wait = (): void => {
        if (timer !== null) clearTimeout(timer);
        timer = setTimeout(finish, MAX_PASTE_GAP_MS);
      };
      const stop = (): void => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      input.on('end', () => reject(new Cancelled()));
      input.on('data', (chunk: string) => {
        for (const character of chunk) {
          if (timer !== null) isMore = true;
          if (timer !== null || ENTER.test(character)) wait();
          else if (character === CTRL_C || character === CTRL_D) reject(new Cancelled());
          else if (BACKSPACES.has(character)) typed = [...typed].slice(0, -1).join('');
          else if (character === CTRL_U) typed = '';
          else if (character < ' ') reject(new UsageError('a control character was typed; nothing was stored'));
          else typed += character;
        }
      });
      input.resume();
    });
  } finally {
    for (const event of ['data', 'end']) input.removeAllListeners(event);
    input.setRawMode(false);
    input.pause();
    stderr.write('\n');
  }
}
