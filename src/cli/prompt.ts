/** Questions to the person at the terminal: on standard error, so that they never mix with what is printed. */

import { createInterface } from 'node:readline/promises';
import { Secret } from '../core/secret.ts';
import { UsageError } from '../platform/errors.ts';
import { Cancelled } from './errors.ts';
import { canAsk, type Terminal } from './terminal.ts';

export interface Question {
  readonly terminal: Terminal;
  readonly signal: AbortSignal;
}

/** Whether the answer was yes; no where it is left empty. @throws UsageError where nobody is there to answer, Cancelled */
export async function confirm({ terminal, signal }: Question, text: string): Promise<boolean> {
  if (!canAsk(terminal))
    throw new UsageError(`${text} Nobody is there to answer`, 'Say --yes, or look first with --dry-run.');
  const lines = createInterface({ input: terminal.stdin, output: terminal.stderr });
  try {
    return /^y(?:es)?$/i.test((await lines.question(`${text} [y/N] `, { signal })).trim());
  } catch (error) {
    // Ctrl-C and Ctrl-D come as keys here, and as no signal.
    if (!(error instanceof Error) || error.name !== 'AbortError') throw error;
    terminal.stderr.write('\n');
    throw signal.aborted ? signal.reason : new Cancelled();
  } finally {
    lines.close();
  }
}

const ENTER = /[\r\n]/;
/** What follows so soon behind Enter was pasted: nobody types that fast. */
const PASTED_WITHIN_MS = 60;
const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const CTRL_U = '\u0015';
const RUBS_OUT: ReadonlySet<string> = new Set(['\b', '\u007f']);

const SEVERAL_LINES = 'Nothing was done. Give what has several lines by - for standard input, or @FILE.';

/** A line that is not shown while it is typed. @throws UsageError where nobody is there, Cancelled */
export async function askHidden({ terminal, signal }: Question, text: string): Promise<Secret> {
  const { stdin, stderr } = terminal;
  if (!canAsk(terminal) || !('setRawMode' in stdin))
    throw new UsageError(`${text}: nobody is there to type it`, 'Give - to read it from standard input.');
  const input = stdin as typeof process.stdin;
  // ORDER: what is typed at the sight of the question is not shown any more.
  input.setRawMode(true);
  input.setEncoding('utf8');
  stderr.write(`${text}: `);
  try {
    return await new Promise((resolve, reject) => {
      let typed = '';
      let timer: NodeJS.Timeout | null = null;
      let isMore = false;
      // ORDER: still unseen until it is quiet: the rest of a paste would stand on the screen, or be taken for the next answer.
      const finish = (): void => {
        if (isMore) reject(new UsageError(`${text}: more than one line was typed or pasted`, SEVERAL_LINES));
        else resolve(new Secret(typed));
      };
      const wait = (): void => {
        if (timer !== null) clearTimeout(timer);
        timer = setTimeout(finish, PASTED_WITHIN_MS);
      };
      const stop = (): void => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      input.on('end', () => reject(new Cancelled()));
      input.on('data', (chunk: string) => {
        for (const character of chunk) {
          if (timer !== null) isMore = true;
          if (timer !== null || ENTER.test(character)) wait();
          else if (character === CTRL_C || character === CTRL_D) reject(new Cancelled());
          else if (RUBS_OUT.has(character)) typed = [...typed].slice(0, -1).join('');
          else if (character === CTRL_U) typed = '';
          else if (character < ' ') reject(new UsageError('a key that is no character was typed; nothing is stored'));
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
