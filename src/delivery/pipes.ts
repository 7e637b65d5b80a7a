/** A program on our own streams, or, where its output is masked, on pipes in their place. Its input is ours. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { type Ending, NOT_EXECUTABLE, NOT_FOUND } from './ending.ts';
import { Misuse } from './misuse.ts';
import { type Pouring, pour } from './pouring.ts';
import { type Program, withUmask } from './program.ts';
import type { Signals } from './signals.ts';

export interface Streams {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
}

/** Resolves when it has ended and all that it wrote has been written. @throws Misuse where the environment is too large for the system */
export async function runOnPipes(program: Program, streams: Streams, signals: Signals): Promise<Ending> {
  const child = withUmask(program.umask, () => start(program));
  signals.sendToNeighbour((signal) => child.kill(signal));
  const { masking } = program;
  const pourings: Pouring[] = [];
  if (masking !== null && child.stdout !== null) pourings.push(pour(child.stdout, masking, streams.stdout));
  if (masking !== null && child.stderr !== null) pourings.push(pour(child.stderr, masking, streams.stderr));
  const ending = await new Promise<Ending>((resolve, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') resolve({ code: NOT_FOUND });
      else if (error.code === 'EACCES') resolve({ code: NOT_EXECUTABLE });
      else reject(error);
    });
    child.once('exit', (code, signal) => resolve(signal === null ? { code: code ?? 0 } : { signal }));
  });
  await Promise.all(pourings.map((pouring) => pouring.finish()));
  return ending;
}

function start({ file, words, environment, masking }: Program): ChildProcess {
  const output = masking === null ? 'inherit' : 'pipe';
  try {
    return spawn(file, words, { env: environment, stdio: ['inherit', output, output] });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'E2BIG') throw error;
    throw new Misuse('the environment is larger than the system allows', '--files delivers values as files.');
  }
}
