/**
 * Runs an allowed command with values in its environment: never through a shell, with nothing of this server's own environment, in a
 * process group of its own that ends with it, and with its output masked before it is cut.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { homedir, tmpdir } from 'node:os';
import type { Readable } from 'node:stream';
import type { Secret } from '../core/secret.ts';
import { MASK } from '../delivery/masker.ts';
import { createMasking, type Masking } from '../delivery/masking.ts';
import type { AllowedCommand } from './allowlist.ts';
import { Refusal } from './refusal.ts';
import { codeOf } from './tool.ts';

const GRACE_MS = 2000;
/** Characters in all: a masker takes some 30 bytes of memory for each. */
const MOST_MASKED = 1024 * 1024;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface Ran {
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether there was more than the limit. */
  readonly isCut: boolean;
  readonly hasTimedOut: boolean;
}

export interface Order {
  readonly command: AllowedCommand;
  readonly extraArguments: readonly string[];
  /** By variable. */
  readonly values: ReadonlyMap<string, Secret>;
  /** Further values that its output must not show. */
  readonly masked: readonly Secret[];
}

/** @throws Refusal where it could not be started */
export async function run({ command, extraArguments, values, masked }: Order, signal: AbortSignal): Promise<Ran> {
  const masking = maskingOf(values, masked);
  if (signal.aborted) throw new Refusal('STOPPING', 'the call was cancelled before the command began');
  const child = await start(command, extraArguments, values);
  const timeout = AbortSignal.timeout(command.timeLimitSeconds * 1000);
  const ending = AbortSignal.any([signal, timeout]);
  const ended = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('exit', (exitCode, by) => resolve({ exitCode, signal: by })),
  );
  const stopped = endGroup(child, ending, ended);
  const [stdout, stderr] = await Promise.all(
    [child.stdout, child.stderr].map((stream) => readMasked(stream, masking, command.outputLimitBytes)),
  );
  const end = await ended;
  await stopped;
  return {
    ...end,
    stdout: stdout?.text ?? '',
    stderr: stderr?.text ?? '',
    isCut: stdout?.isCut === true || stderr?.isCut === true,
    hasTimedOut: timeout.aborted && !signal.aborted,
  };
}

/** @throws Refusal where it cannot be kept that no value is shown */
function maskingOf(values: ReadonlyMap<string, Secret>, masked: readonly Secret[]): Masking {
  const size = masked.reduce((all, value) => all + value.reveal().length, 0);
  if (size > MOST_MASKED) {
    throw new Refusal('BUSY', 'too much is kept in files to mask it in the output: remove some with remove_file');
  }
  const masking = createMasking([...values, ...masked.map((value) => ['', value] as const)]);
  const tooShort = masking.tooShort.filter((name) => name !== '');
  if (tooShort.length > 0) {
    throw new Refusal('FAILED', `${tooShort.join(', ')}: the value is too short to be masked in the output`);
  }
  return masking;
}

/** What a program needs to feel at home, and no more. */
function environmentOf(command: AllowedCommand, values: ReadonlyMap<string, Secret>): Record<string, string> {
  return {
    PATH,
    HOME: homedir(),
    TMPDIR: tmpdir(),
    LANG: 'C.UTF-8',
    ...Object.fromEntries(command.variables),
    ...Object.fromEntries([...values].map(([name, value]) => [name, value.reveal()])),
  };
}

type Child = ChildProcess & { readonly stdout: Readable; readonly stderr: Readable };

async function start(
  command: AllowedCommand,
  extraArguments: readonly string[],
  values: ReadonlyMap<string, Secret>,
): Promise<Child> {
  for (const [name, value] of values) {
    // WHY first: Node's own error would show the value.
    if (value.reveal().includes('\0'))
      throw new Refusal('FAILED', `${name}: the value holds a null, so no variable can`);
  }
  try {
    const child = spawn(command.program, [...command.arguments, ...extraArguments], {
      cwd: command.folder,
      env: environmentOf(command, values),
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: false,
      detached: true,
    });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    return child;
  } catch (error) {
    throw new Refusal('FAILED', `the command could not be started${codeOf(error)}`);
  }
}

/** Asks the whole group to end, and makes it, when `ending` is aborted; and makes what the command left behind end with it. */
async function endGroup(child: Child, ending: AbortSignal, ended: Promise<unknown>): Promise<void> {
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // Nobody is left.
    }
  };
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  if (ending.aborted) resolve();
  ending.addEventListener('abort', () => resolve(), { once: true });
  await Promise.race([aborted, ended]);
  if (ending.aborted) {
    kill('SIGTERM');
    const grace = Promise.withResolvers<void>();
    const timer = setTimeout(grace.resolve, GRACE_MS);
    await Promise.race([grace.promise, ended]);
    clearTimeout(timer);
  }
  // WHY always: what it left in the background would hold the values, and the pipes.
  kill('SIGKILL');
  // What left the group goes on, and is listened to no longer.
  const timer = setTimeout(() => {
    for (const stream of [child.stdout, child.stderr]) stream.destroy();
  }, GRACE_MS);
  // WHY: the streams may be closed already, and then nothing should wait for this.
  timer.unref();
}

async function* untilClosed(stream: Readable): AsyncGenerator<Uint8Array> {
  try {
    yield* stream;
  } catch {
    // It was closed from this side.
  }
}

interface Output {
  readonly text: string;
  readonly isCut: boolean;
}

async function readMasked(stream: Readable, masking: Masking, limitBytes: number): Promise<Output> {
  const masker = masking.masker();
  const kept: Uint8Array[] = [];
  let room = limitBytes;
  let isCut = false;
  // ORDER: masked, then cut: a value that the limit cuts in two would not be known by its first half.
  const keep = (bytes: Uint8Array): void => {
    if (bytes.length > room) isCut = true;
    if (room > 0) kept.push(bytes.subarray(0, room));
    room -= Math.min(bytes.length, room);
  };
  for await (const chunk of untilClosed(stream)) keep(masker.write(chunk));
  keep(masker.release());
  // The output ends with the beginning of a value: a command that was stopped while it wrote it.
  if (masker.isHolding) keep(Buffer.from(MASK));
  return { text: Buffer.concat(kept).toString('utf8'), isCut };
}
