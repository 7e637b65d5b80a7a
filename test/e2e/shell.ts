/** A shell as a person has it open: blocks of commands go in one after the other, and what they print comes back. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../kit/folder.ts';

const END = 'end of the block';
const BLOCK_TIMEOUT_MS = 60_000;

interface Place {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

export class Shell {
  readonly #bash: ChildProcess;
  readonly #blockFile: string;

  /** `folder` is for its own use. */
  constructor(scope: Scope, folder: string, place: Place) {
    this.#blockFile = join(folder, 'block.sh');
    this.#bash = spawn('bash', ['--noprofile', '--norc'], { ...place, stdio: ['pipe', 'pipe', 'inherit'] });
    scope.after(() => this.#bash.kill('SIGKILL'));
  }

  /** Runs the commands in the one session; resolves to what they printed, both streams, without the last line end. */
  async run(commands: string): Promise<string> {
    const { stdin, stdout } = this.#bash;
    if (stdin === null || stdout === null) throw new Error('the shell has no pipes');
    writeFileSync(this.#blockFile, `${commands}\n`);
    const printed = await new Promise<string>((resolve, reject) => {
      let text = '';
      const timer = setTimeout(() => reject(new Error(`no end of:\n${commands}\n${text}`)), BLOCK_TIMEOUT_MS);
      const look = (chunk: string): void => {
        text += chunk;
        if (!text.endsWith(`${END}\n`)) return;
        clearTimeout(timer);
        stdout.off('data', look);
        resolve(text);
      };
      stdout.setEncoding('utf8').on('data', look);
      stdin.write(`. '${this.#blockFile}' 2>&1 </dev/null; printf '${END}\\n'\n`);
    });
    return printed.slice(0, -END.length - 1).trimEnd();
  }
}

/** Runs the command in the background, as in a terminal of its own, until it prints `readyText`. */
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
