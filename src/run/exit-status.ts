/** How a program ended, and how we end the same way. */
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

export type ExitStatus = ({ readonly code: number } | { readonly signal: NodeJS.Signals }) & {
  /** Whether a signal ended the writing of what others still said: our output may never take what waits for it. */
  readonly wasInterrupted?: boolean;
  /** For people: why it did not start, or that what it wrote was lost. */
  readonly remark?: string;
};

/** As shells say it. */
export const NOT_FOUND = 127;
export const NOT_EXECUTABLE = 126;
/** For a program that ended well, but whose output was lost. */
const OUTPUT_LOST = 2;
const SIGNALLED = 128;
const DELIVERED_WITHIN_MS = 500;

/** These write the memory of a process to the disk: ours has held values. */
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

/** The ending where our own output could not be written, as the system's code says. */
export function withWriteError(ending: ExitStatus, code: string): ExitStatus {
  const remark = `standard output cannot be written (${code})`;
  return 'code' in ending && ending.code === 0 ? { ...ending, code: OUTPUT_LOST, remark } : { ...ending, remark };
}

/** Ends this process by the signal of the ending; resolves to an exit code where there is none, or where it does not end us. */
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
    await sleep(DELIVERED_WITHIN_MS);
  }
  return SIGNALLED + constants.signals[signal];
}

export function signalOf(number: number): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, own]) => own === number);
  return (found?.[0] as NodeJS.Signals | undefined) ?? null;
}
