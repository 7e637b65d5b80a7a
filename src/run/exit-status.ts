/** The exit status of a program, and ending this process in the same way. */
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export type ExitStatus = ({ readonly code: number } | { readonly signal: NodeJS.Signals }) & {
  /**
   * Whether a signal stopped the writing of remaining output, because this process's output may be blocked
   * indefinitely.
   */
  readonly wasInterrupted?: boolean;
  /** A line for the user: why the program did not start, or a notice that its output was lost. */
  readonly remark?: string;
};

export const NOT_FOUND = 127;
export const NOT_EXECUTABLE = 126;
/** The program exited with 0, but its output was lost. */
const OUTPUT_LOST = 2;
const SIGNALLED = 128;
const SIGNAL_DELIVERY_MS = 500;

/** WHY never sent to this process: a core dump would contain values. */
const CORE_DUMP_SIGNALS: ReadonlySet<NodeJS.Signals> = new Set([
  ...([
    'SIGQUIT',
    'SIGILL',
    'SIGTRAP',
    'SIGABRT',
    'SIGBUS',
    'SIGFPE',
    'SIGSEGV',
    'SIGXCPU',
    'SIGXFSZ',
    'SIGSYS',
  ] as const),
]);

/** The exit status after this process's output could not be written; `code` is the system's error code. */
export function withWriteError(ending: ExitStatus, code: string): ExitStatus {
  const remark = `standard output cannot be written (${code})`;
  return 'code' in ending && ending.code === 0 ? { ...ending, code: OUTPUT_LOST, remark } : { ...ending, remark };
}

/**
 * Ends this process with the program's signal. Resolves to an exit code if there is no signal, or if the signal has no
 * effect.
 */
export async function exitLike(ending: ExitStatus): Promise<number> {
  if ('code' in ending) {
    if (ending.wasInterrupted === true) process.exit(ending.code);
    return ending.code;
  }
  const { signal } = ending;
  if (!CORE_DUMP_SIGNALS.has(signal)) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
    // SIGPIPE and a few more do not end a Node process.
    await sleep(SIGNAL_DELIVERY_MS);
  }
  return SIGNALLED + constants.signals[signal];
}

export function signalOf(number: number): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, own]) => own === number);
  return (found?.[0] as NodeJS.Signals | undefined) ?? null;
}
