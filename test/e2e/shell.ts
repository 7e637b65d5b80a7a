/** An interactive shell: runs blocks of commands one after the other and returns their output. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../kit/directory.ts';
import { openPseudoTerminal, type PseudoTerminal } from '../kit/pseudo-terminal.ts';

/** Only a hang reaches this limit. */
const BLOCK_TIMEOUT_MS = 180_000;
/** The end of the screen while a program asks: a question, or the prompt of a secret. */
const PROMPT = /(?:\[y\/N\]|(?:[Vv]alue|Passphrase|Share|again)[^\n]*:) ?$/;

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

interface Answers {
  /** The lines to type when programs ask, in order. After the last one only Enter is pressed. */
  readonly answers?: readonly string[];
}

const BASH = ['bash', '--noprofile', '--norc', '--noediting'];

export class Shell {
  readonly #terminal: PseudoTerminal;
  readonly #blockFile: string;
  #isReady = false;
  #seen = 0;
  #blocks = 0;

  /**
   * `directory` is private to the shell. WHY a terminal: programs ask only on a terminal, and a page must show their
   * questions.
   */
  constructor(scope: Scope, directory: string, { cwd, env }: Place, program: readonly string[] = BASH) {
    this.#blockFile = join(directory, 'block.sh');
    // Disables colours and progress bars; all other output is as on an operator's terminal.
    const environment = { ...env, TERM: 'dumb', npm_config_progress: 'false' };
    this.#terminal = openPseudoTerminal(scope, program, { cwd, environment, columns: 200 });
  }

  get pid(): number {
    return this.#terminal.pid;
  }

  /** Runs the commands in the one session; resolves to what they printed, both streams, without the last line end. */
  async run(commands: string, answers: Answers = {}): Promise<string> {
    if (!this.#isReady) await this.#type('stty -echo; PS1= PS2=', {});
    this.#isReady = true;
    writeFileSync(this.#blockFile, `${commands}\n`);
    return (await this.#type(`. '${this.#blockFile}'`, answers)).replaceAll(/\r+\n/g, '\n').trimEnd();
  }

  /** Resolves to the output after the line. */
  async #type(line: string, { answers = [] }: Answers): Promise<string> {
    const number = ++this.#blocks;
    // The marker is typed in two pieces, so that it is not found in the echo of the input.
    this.#terminal.type(`${line}; printf '%s of block ${number}\\n' end\n`);
    const rest = `^(?:[\\s\\S]{${this.#seen}})([\\s\\S]*)`;
    const end = new RegExp(`${rest}end of block ${number}\r\n`);
    const left = [...answers];
    let answeredAt = this.#seen;
    const look = (screen: string): boolean => {
      if (end.test(screen)) return true;
      if (screen.length > answeredAt && PROMPT.test(screen.slice(answeredAt))) {
        answeredAt = screen.length;
        this.#terminal.type(`${left.shift() ?? ''}\r`);
      }
      return false;
    };
    await this.#terminal.shows({ test: look }, BLOCK_TIMEOUT_MS);
    const screen = this.#terminal.screen();
    const printed = end.exec(screen)?.[1] ?? '';
    this.#seen = screen.length;
    return printed;
  }
}

/** Runs the command in the background, as in a separate terminal, until it prints `readyText`. */
export async function startInBackground(scope: Scope, command: string, readyText: string, place: Place) {
  const child = spawn('bash', ['--noprofile', '--norc', '-c', command], {
    ...place,
    detached: true, // a process group of its own, so that all of it can be ended
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
      process.kill(-child.pid, signal);
    const [code] = await ended;
    return code;
  };
  scope.after(() => end('SIGKILL'));
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    const look = (chunk: string): void => {
      printed += chunk;
      if (printed.includes(readyText)) resolve();
    };
    child.stdout.setEncoding('utf8').on('data', look);
    child.stderr.setEncoding('utf8').on('data', look);
    void ended.then(() => reject(new Error(`"${command}" ended: ${printed}`)));
  });
  return { printed, end };
}
