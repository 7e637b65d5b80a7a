/**
 * A command line run in this process, as `src/bin/leasehold.ts` runs it in a separate one: with its umask, its streams
 * and its environment, and none of this process's. It costs a tenth of the processor time of a process.
 */

import { PassThrough, Readable, Writable } from 'node:stream';
import { main } from '../../src/cli/program.ts';
import { challengeServer } from '../../src/server/server-files.ts';

const challenge = async (...asked: Parameters<typeof challengeServer>) => challengeServer(...asked);

const OWN_UMASK = 0o077;
/** Commands that start programs, handle signals, or exit the process. */
const PROCESSES: readonly string[] = ['run', 'mcp', 'server'];
export interface CommandLine {
  readonly words: readonly string[];
  /** Null for a standard input that stays open and silent. */
  readonly input: string | Uint8Array | Readable | null;
  /** The width of a terminal that all three streams are; null for pipes. Only in this process. */
  readonly columns: number | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Aborts as a signal of the system does in a process: with a `Cancelled` as the reason. */
  readonly signal: AbortSignal | null;
  /** Gets what is printed while the command runs. Only in this process. */
  readonly onStdout: ((text: string) => void) | null;
  /** The same for standard error. */
  readonly onStderr: ((text: string) => void) | null;
  /** Gets what the command asks of a second signal: whether it leaves the process alone. Only in this process. */
  readonly onEndsItself: ((endsItself: boolean) => void) | null;
}

export function needsProcess(words: readonly string[]): boolean {
  return words.some((word) => PROCESSES.includes(word));
}

let running = 0;
let callersUmask = 0;

export async function runInProcess({ words, input, columns, environment, cwd, signal, ...printing }: CommandLine) {
  const isTTY = columns === null ? {} : { isTTY: true, columns };
  const stdout = Object.assign(new Printed(printing.onStdout), isTTY);
  const stderr = Object.assign(new Printed(printing.onStderr), isTTY);
  const stdin = toStream(input);
  if (running === 0) callersUmask = process.umask(OWN_UMASK);
  running += 1;
  try {
    const terminal = {
      stdin,
      stdout,
      stderr,
      environment,
      workingDirectory: cwd,
      umask: callersUmask,
      challengeServer: challenge,
    };
    const code = await main(words, terminal, (_, endsItself) => {
      printing.onEndsItself?.(endsItself);
      return signal ?? new AbortController().signal;
    });
    return { code, signal: null, stdout: stdout.text(), stderr: stderr.text() };
  } finally {
    running -= 1;
    if (running === 0) process.umask(callersUmask);
    stdin.destroy();
  }
}

function toStream(input: CommandLine['input']): Readable {
  if (input === null) return new PassThrough();
  return input instanceof Readable ? input : Readable.from(input.length === 0 ? [] : [Buffer.from(input)]);
}

class Printed extends Writable {
  readonly #chunks: Buffer[] = [];
  readonly #onText: ((text: string) => void) | null;

  constructor(onText: ((text: string) => void) | null) {
    super();
    this.#onText = onText;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    this.#onText?.(chunk.toString());
    done();
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }
}
