/**
 * Runs an allowed command with values in its environment: never through a shell, with nothing of this server's own environment, in a
 * process group of its own that ends with it, as does what left the group, and with its output masked after its end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { homedir, tmpdir } from 'node:os';
import type { Readable } from 'node:stream';
import type { Secret } from '../core/secret.ts';
import { createMasking } from '../masking/masking.ts';
import { errnoSuffix } from '../platform/errno.ts';
import type { AllowedCommand } from './allowlist.ts';
import { ToolError } from './errors.ts';
import { newMark, type RunTag } from './orphan-processes.ts';
import { type CapturedOutput, maskAndTruncate, type Output, readRaw } from './output.ts';

const GRACE_MS = 2000;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface CommandResult {
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether there was more than the limit. */
  readonly isCut: boolean;
  readonly hasTimedOut: boolean;
}

export interface CommandRequest {
  readonly command: AllowedCommand;
  readonly extraArguments: readonly string[];
  /** By variable. */
  readonly values: ReadonlyMap<string, Secret>;
  /** What its output must not show, asked for when it has ended. */
  readonly masked: () => readonly Secret[];
}

/** @throws Refusal where it could not be started */
export async function run(
  { command, extraArguments, values, masked }: CommandRequest,
  signal: AbortSignal,
): Promise<CommandResult> {
  if (signal.aborted) throw new ToolError('STOPPING', 'the call was cancelled before the command began');
  const mark = newMark();
  const child = await start(command, extraArguments, values, mark);
  const timeout = AbortSignal.timeout(command.timeLimitSeconds * 1000);
  const ending = AbortSignal.any([signal, timeout]);
  const ended = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('exit', (exitCode, by) => resolve({ exitCode, signal: by })),
  );
  const stopped = endAll(child, mark, ending, ended);
  const limit = command.outputLimitBytes;
  const printed = await Promise.all([child.stdout, child.stderr].map((stream) => readRaw(stream, limit)));
  const end = await ended;
  await stopped;
  const [stdout, stderr] = show(printed, masked(), limit, end.signal !== null || ending.aborted);
  return {
    ...end,
    stdout: stdout?.text ?? '',
    stderr: stderr?.text ?? '',
    isCut: stdout?.isCut === true || stderr?.isCut === true,
    hasTimedOut: timeout.aborted && !signal.aborted,
  };
}

/** WHY in one go: a masking is large, so there is never more than one of them. */
function show(
  printed: readonly CapturedOutput[],
  values: readonly Secret[],
  limitBytes: number,
  wasStopped: boolean,
): Output[] {
  const masking = createMasking(values.map((value) => ['', value]));
  return printed.map((raw) => maskAndTruncate({ ...raw, isWhole: raw.isWhole && !wasStopped }, masking, limitBytes));
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
  mark: RunTag,
): Promise<Child> {
  for (const [name, value] of values) {
    // WHY first: Node's own error would show the value.
    if (value.reveal().includes('\0'))
      throw new ToolError('FAILED', `${name}: the value holds a null, so no variable can`);
  }
  try {
    const child = spawn(command.program, [...command.arguments, ...extraArguments], {
      cwd: command.folder,
      env: { ...environmentOf(command, values), ...mark.variable },
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: false,
      detached: true,
    });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    return child;
  } catch (error) {
    throw new ToolError('FAILED', `the command could not be started${errnoSuffix(error)}`);
  }
}

/** Asks the whole group to end, and makes it, when `ending` is aborted; and makes what the command left behind end with it. */
async function endAll(child: Child, mark: RunTag, ending: AbortSignal, ended: Promise<unknown>): Promise<void> {
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
  // What cannot be found goes on, and is listened to no longer.
  const timer = setTimeout(() => {
    for (const stream of [child.stdout, child.stderr]) stream.destroy();
  }, GRACE_MS);
  // WHY: the streams may be closed already, and then nothing should wait for this.
  timer.unref();
  await mark.end();
}
