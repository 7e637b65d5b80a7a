/**
 * A program on a terminal of its own, between ours and it: colours, keys, window size and full screens are as without us, and its output
 * can be masked. The package that makes terminals is optional, and loaded when one is wanted.
 */
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import type { ReadStream, WriteStream } from 'node:tty';
import type { IPty } from '@lydell/node-pty';
import type { Masking } from '../masking/masking.ts';
import { type Program, withUmask } from './executable.ts';
import { type ExitStatus, signalOf } from './exit-status.ts';
import { withIgnoredSignals } from './ignored-signals.ts';
import { MaskingStream } from './masking-stream.ts';
import { passOn } from './output-pump.ts';
import { drainPty } from './pty-drain.ts';
import type { Signals } from './signals.ts';

export type PtyMaker = Pick<typeof import('@lydell/node-pty'), 'spawn'>;

export interface Terminals {
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
}

/** Null where there is none for this system, or it was not installed. */
export async function loadPtyMaker(): Promise<PtyMaker | null> {
  try {
    return await import('@lydell/node-pty');
  } catch {
    return null;
  }
}

/** Resolves when it has ended and all that it wrote has been written; `atExit` is called between the two at the latest. Our terminal is then as it was before. */
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
    // WHY: Node's raw mode goes on adding CR to each LF, which its own terminal has done for the program already, where it wanted to.
    spawnSync('stty', ['-opost'], { stdio: ['inherit', 'ignore', 'ignore'] });
  };
  const masked = new MaskingStream(program.masking);
  const done = passOn(masked, stdout);
  makeRaw();
  try {
    const pty = withUmask(program.umask, () => start(maker, program, stdout));
    const exited = new Promise<ExitStatus>((resolve) => pty.onExit((exit) => resolve(toEnding(exit))));
    const reading = drainPty(pty, atExit);
    // The types know text alone; without an encoding it is bytes.
    pty.onData((chunk) => {
      // WHY never paused once nobody sees it: a program that ignores the hangup would wait for ever.
      if (!masked.write(chunk as unknown as Uint8Array) && !masked.destroyed) reading.pause();
    });
    masked.on('drain', () => reading.resume());
    const hangUp = (): void => pty.kill('SIGHUP');
    const type = (chunk: Buffer): void => pty.write(chunk as unknown as string);
    const resize = (): void => {
      try {
        pty.resize(stdout.columns || 80, stdout.rows || 24);
      } catch {
        // The program has ended, and its terminal with it.
      }
    };
    // Whoever brings us back from a stop has set the terminal for itself.
    const goOn = (): void => {
      stdin.setRawMode(false);
      makeRaw();
      resize();
    };
    signals.sendTo((signal) => {
      if (!reading.stop()) pty.kill(signal);
    });
    stdin.on('data', type).once('end', hangUp);
    stdout.on('resize', resize).once('error', hangUp);
    process.on('SIGCONT', goOn);
    try {
      return await exited;
    } finally {
      process.off('SIGCONT', goOn);
      stdout.off('resize', resize).off('error', hangUp);
      stdin.off('data', type).off('end', hangUp).pause();
      masked.end();
      // A signal has ended the reading: then nobody waits for a terminal that takes nothing.
      if (!reading.isStopped()) await done;
    }
  } finally {
    stdin.setRawMode(isRaw);
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
    cwd: here(environment['PWD']),
    env: { ...environment },
  });
}

/** The caller's own name for the folder it stands in, which may lead over links; the package puts it into PWD. */
function here(named: string | undefined): string {
  const folder = process.cwd();
  const found = named?.startsWith('/') ? statSync(named, { throwIfNoEntry: false }) : undefined;
  const own = statSync(folder);
  return named !== undefined && found?.ino === own.ino && found.dev === own.dev ? named : folder;
}

function toEnding({ exitCode, signal = 0 }: { exitCode: number; signal?: number }): ExitStatus {
  const name = signal === 0 ? null : signalOf(signal);
  return name === null ? { code: exitCode } : { signal: name };
}
