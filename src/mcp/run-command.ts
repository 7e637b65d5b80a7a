/**
 * Runs an allowed command with values in its environment: without a shell, without this server's own environment, in a
 * separate process group that is killed when the command ends, and with its output masked after its end.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { homedir, tmpdir } from 'node:os';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Secret } from '../core/secret.ts';
import { createMasking } from '../masking/masking.ts';
import { errnoSuffix } from '../platform/errno.ts';
import type { AllowedCommand } from './allowlist.ts';
import { ToolError } from './errors.ts';
import { type CapturedOutput, maskAndTruncate, readRaw, type ShownOutput } from './output.ts';

const GRACE_MS = 2000;
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export interface CommandResult {
  /** Null when a signal ended the command. */
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether the output exceeded the limit. */
  readonly isCut: boolean;
  readonly hasTimedOut: boolean;
}

export interface CommandRequest {
  readonly command: AllowedCommand;
  readonly extraArguments: readonly string[];
  /** By the name of the variable. */
  readonly values: ReadonlyMap<string, Secret>;
  /** The values to mask, read after the command has ended. */
  readonly masked: () => readonly Secret[];
}

/** @throws ToolError when the command could not be started */
export async function run(
  { command, extraArguments, values, masked }: CommandRequest,
  signal: AbortSignal,
): Promise<CommandResult> {
  if (signal.aborted) throw new ToolError('STOPPING', 'the call was cancelled before the command began');
  const child = await start(command, extraArguments, values);
  const timeout = AbortSignal.timeout(command.timeLimitSeconds * 1000);
  const ending = AbortSignal.any([signal, timeout]);
  const ended = new Promise<{ exitCode: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('exit', (exitCode, by) => resolve({ exitCode, signal: by })),
  );
  const stopped = endAll(child, ending, ended);
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

/** WHY both streams together: a masking is large, so only one exists at a time. */
function show(
  printed: readonly CapturedOutput[],
  values: readonly Secret[],
  limitBytes: number,
  wasStopped: boolean,
): ShownOutput[] {
  const masking = createMasking(values.map((value) => ['', value]));
  return printed.map((raw) => maskAndTruncate({ ...raw, isWhole: raw.isWhole && !wasStopped }, masking, limitBytes));
}

/** The minimal environment of a program. */
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
    // WHY: Node's own error message would contain the value.
    if (value.reveal().includes('\0'))
      throw new ToolError('FAILED', `${name}: the value contains a NUL, which no variable can`);
  }
  try {
    const child = spawn(command.program, [...command.arguments, ...extraArguments], {
      cwd: command.directory,
      env: environmentOf(command, values),
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

/**
 * Kills the process group: with SIGTERM and a grace period when `ending` is aborted, and with SIGKILL after the
 * command's end.
 */
async function endAll(child: Child, ending: AbortSignal, ended: Promise<unknown>): Promise<void> {
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, signal);
    } catch {
      // The group has no processes.
    }
  };
  if (!ending.aborted) await Promise.race([once(ending, 'abort'), ended]);
  if (ending.aborted) {
    kill('SIGTERM');
    await Promise.race([sleep(GRACE_MS, undefined, { ref: false }), ended]);
  }
  // WHY always: background processes would keep the values and the pipes.
  kill('SIGKILL');
  // A process that left the group keeps running; its output is no longer read.
  // WHY without a reference: the timer must not keep the process alive when the streams are already closed.
  setTimeout(() => [child.stdout, child.stderr].map((stream) => stream.destroy()), GRACE_MS).unref();
}
