/**
 * Runs a program on a pseudo-terminal between it and the user's terminal. Colours, keys, window size and full-screen
 * programs work as on the user's terminal, and the output can be masked. The package that makes pseudo-terminals is
 * optional and loaded on demand.
 */
import { spawnSync } from 'node:child_process';
import type { ReadStream, WriteStream } from 'node:tty';
import type { IPty } from '@lydell/node-pty';
import type { Masking } from '../masking/masking.ts';
import {
  type ExitStatus,
  type Program,
  type Signals,
  signalOf,
  withIgnoredSignals,
  withUmask,
} from './child-process.ts';
import { MaskingStream, passOn } from './output-pump.ts';

export type PtyMaker = Pick<typeof import('@lydell/node-pty'), 'spawn'>;

export interface Terminals {
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
}

/** Resolves to null when the package is not installed or does not support this system. */
export async function loadPtyMaker(): Promise<PtyMaker | null> {
  try {
    return await import('@lydell/node-pty');
  } catch {
    return null;
  }
}

/**
 * Resolves when the program has ended and its output has been written; `atExit` is called between the two. Restores the
 * mode of the user's terminal.
 */
export async function runOnPty(
  maker: PtyMaker,
  program: Program & { readonly masking: Masking },
  { stdin, stdout }: Terminals,
  signals: Signals,
  atExit: () => void,
): Promise<ExitStatus> {
  const isRaw = stdin.isRaw;
  const makeRaw = (): void => {
    stdin.setRawMode(true);
    // WHY: Node's raw mode still adds CR to each LF, which the program's own terminal already does if so configured.
    spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  };
  const masked = new MaskingStream(program.masking);
  const done = passOn(masked, stdout);
  makeRaw();
  try {
    const pty = withUmask(program.umask, () => start(maker, program, stdout));
    const exited = new Promise<ExitStatus>((resolve) => pty.onExit((exit) => resolve(toExitStatus(exit))));
    const output = new PtyOutput(pty, masked);
    const hangUp = (): void => pty.kill('SIGHUP');
    const type = (chunk: Buffer): void => pty.write(chunk as unknown as string);
    const resize = (): void => {
      try {
        pty.resize(stdout.columns || 80, stdout.rows || 24);
      } catch {
        // The program has ended, and its terminal was closed.
      }
    };
    // A shell that continues this process after a stop has changed the mode of the terminal.
    const onContinue = (): void => {
      stdin.setRawMode(false);
      makeRaw();
      resize();
    };
    signals.sendTo((signal) => pty.kill(signal));
    stdin.on('data', type).once('end', hangUp);
    stdout.on('resize', resize).once('error', hangUp);
    process.on('SIGCONT', onContinue);
    const interrupted = Promise.withResolvers<void>();
    try {
      return await exited;
    } finally {
      signals.sendTo(() => interrupted.resolve());
      atExit();
      process.off('SIGCONT', onContinue);
      stdout.off('resize', resize).off('error', hangUp);
      stdin.off('data', type).off('end', hangUp).pause();
      output.flush();
      masked.end();
      await Promise.race([done, interrupted.promise]);
    }
  } finally {
    stdin.setRawMode(isRaw);
  }
}

/**
 * Passes a pseudo-terminal's output to the masker. WHY not directly: the package closes the terminal 200 ms after the
 * program's end, and a write to a slow terminal blocks this process for longer. So nothing is written between the
 * program's end and the close, and by then all output has been read. ORDER: written in the check phase, after which
 * Node renews its clock before it runs timers.
 */
export class PtyOutput {
  readonly #pty: IPty;
  readonly #masked: MaskingStream;
  #pending: Uint8Array[] = [];
  #scheduled: NodeJS.Immediate | null = null;

  constructor(pty: IPty, masked: MaskingStream) {
    this.#pty = pty;
    this.#masked = masked;
    // The package's types contain only text. Without an encoding it delivers bytes.
    pty.onData((chunk) => this.#add(chunk as unknown as Uint8Array));
    masked.on('drain', () => pty.resume());
  }

  flush(): void {
    for (const chunk of this.#pending.splice(0)) {
      // WHY not when destroyed: a program that ignores the hangup would block indefinitely.
      if (!this.#masked.write(chunk) && !this.#masked.destroyed) this.#pty.pause();
    }
  }

  #add(chunk: Uint8Array): void {
    this.#pending.push(chunk);
    this.#scheduled ??= setImmediate(() => {
      this.#scheduled = null;
      if (isRunning(this.#pty.pid)) this.flush();
    });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function start(maker: PtyMaker, program: Program, { columns, rows }: WriteStream): IPty {
  const { environment } = program;
  const [file, words] = withIgnoredSignals(program);
  return maker.spawn(file, [...words], {
    encoding: null,
    cols: columns || 80,
    rows: rows || 24,
    name: environment['TERM'] || 'dumb',
    cwd: process.cwd(),
    env: { ...environment },
  });
}

function toExitStatus({ exitCode, signal = 0 }: { exitCode: number; signal?: number }): ExitStatus {
  const name = signal === 0 ? null : signalOf(signal);
  return name === null ? { code: exitCode } : { signal: name };
}
