/**
 * Runs a program on this process's own streams, or with its output on pipes if it is masked. Its standard input is
 * inherited.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { UsageError } from '../platform/errors.ts';
import {
  type ExitStatus,
  NOT_EXECUTABLE,
  NOT_FOUND,
  type Program,
  type Signals,
  withIgnoredSignals,
  withUmask,
  withWriteError,
} from './child-process.ts';
import { type OutputPump, pumpOutput } from './output-pump.ts';
import { makePrivateFiles, type PrivateFiles } from './value-files.ts';

export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/**
 * A real pipe to a program. WHY: Node's `pipe` is a socket pair, which programs cannot open as /dev/stdout, and which
 * reports a connection reset instead of SIGPIPE. The file is deleted once both ends are open.
 */
interface Fifo {
  /** The end that is passed to the program. Call `closeWriteEnd` after it has started. */
  readonly writeEnd: number;
  readonly readEnd: Readable;
  /** Closes this process's copy of the write end, so that the reader ends when the program closes its copy. */
  closeWriteEnd(): void;
}

/** One pipe for each output. If both outputs lead to the same file, both use the same pipe, which keeps their order. */
interface Pipes {
  readonly stdout: Fifo;
  readonly stderr: Fifo;
}

/**
 * Resolves when the program has ended and its output was written. `atExit` is called between the two, and a signal
 * after that stops the writing. @throws UsageError if the environment is too large for the system
 */
export async function runOnPipes(
  program: Program,
  streams: Streams,
  signals: Signals,
  atExit: () => void,
): Promise<ExitStatus> {
  const { masking } = program;
  // ORDER: nothing is awaited between the caller's check for a signal and the program's start.
  const pipes = masking === null ? null : makePipes(streams);
  const started = withUmask(program.umask, () => start(program, pipes));
  if ('remark' in started) return started;
  const child = started;
  signals.forwardToSameGroup((signal) => child.kill(signal));
  const pumps: OutputPump[] = [];
  if (masking !== null) {
    const stdout = pipes?.stdout.readEnd ?? child.stdout;
    const stderr = pipes?.stderr.readEnd ?? child.stderr;
    if (stdout !== null) pumps.push(pumpOutput(stdout, masking, streams.stdout, false));
    if (stderr !== null && stderr !== stdout) pumps.push(pumpOutput(stderr, masking, streams.stderr, true));
  }
  const ending = await new Promise<ExitStatus>((resolve) => {
    child.once('error', (error) => resolve(notStarted(program, error)));
    child.once('exit', (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }));
  });
  // Processes that still write have outlived the program, and receive no signals from this process.
  let wasInterrupted = false;
  signals.sendTo(() => {
    wasInterrupted = true;
    for (const pump of pumps) pump.stop();
  });
  atExit();
  await Promise.all(pumps.map((pump) => pump.finish()));
  const writeError = pumps[0]?.writeError() ?? null;
  const status = writeError === null ? ending : withWriteError(ending, writeError);
  return wasInterrupted ? { ...status, wasInterrupted } : status;
}

function notStarted({ file }: Program, error: NodeJS.ErrnoException): ExitStatus & { readonly remark: string } {
  const code = error.code === 'ENOENT' ? NOT_FOUND : NOT_EXECUTABLE;
  return { code, remark: `${file}: cannot be started (${error.code})` };
}

/** Returns null when the system cannot make fifos; Node's pipes are used then. */
function makePipes(streams: Streams): Pipes | null {
  const files = makePrivateFiles();
  try {
    const stdout = makeFifo(files, 'stdout');
    if (stdout === null) return null;
    const stderr = isSamePlace(streams) ? stdout : makeFifo(files, 'stderr');
    return stderr === null ? null : { stdout, stderr };
  } finally {
    files.remove();
  }
}

/** Creates the fifo in the given directory; returns null when the system cannot. */
function makeFifo({ directory }: PrivateFiles, name: string): Fifo | null {
  const path = join(directory, name);
  const made = spawnSync('mkfifo', ['-m', '600', path], { stdio: 'ignore', env: { PATH: process.env['PATH'] } });
  if (made.status !== 0) return null;
  // ORDER: the read end first, non-blocking: opening the write end blocks without a reader.
  const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, constants.O_WRONLY);
  const readEnd = new Socket({ fd: readFd, readable: true, writable: false });
  return { writeEnd, readEnd, closeWriteEnd: () => closeSync(writeEnd) };
}

function isSamePlace({ stdout, stderr }: Streams): boolean {
  if (!hasDescriptor(stdout) || !hasDescriptor(stderr)) return false;
  const [one, other] = [fstatSync(stdout.fd, { bigint: true }), fstatSync(stderr.fd, { bigint: true })];
  return one.dev === other.dev && one.ino === other.ino && one.rdev === other.rdev;
}

function hasDescriptor(stream: Writable): stream is Writable & { readonly fd: number } {
  return 'fd' in stream && typeof stream.fd === 'number';
}

/** @throws UsageError when the environment is too large for the system */
function start(program: Program, pipes: Pipes | null): ChildProcess | ReturnType<typeof notStarted> {
  const { environment, masking } = program;
  const [file, words] = withIgnoredSignals(program);
  const other = masking === null ? 'inherit' : 'pipe';
  const stdio = ['inherit', pipes?.stdout.writeEnd ?? other, pipes?.stderr.writeEnd ?? other] as const;
  try {
    return spawn(file, words, { env: environment, stdio: [...stdio] });
  } catch (thrown) {
    const error = thrown as NodeJS.ErrnoException;
    if (error.code === 'E2BIG')
      throw new UsageError('the environment is larger than the system allows', '--files delivers values as files.');
    if (error.syscall === undefined) throw error;
    return notStarted(program, error);
  } finally {
    for (const pipe of new Set([pipes?.stdout, pipes?.stderr])) pipe?.closeWriteEnd();
  }
}
