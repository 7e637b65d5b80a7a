/**
 * Signals that were ignored when the program was started, as with `nohup` and `trap ''`. The program and its children
 * ignore them too.
 */
import { constants } from 'node:os';

/**
 * Set by `scripts/leasehold`: SigIgn of proc_pid_status(5). WHY not read here: Node resets every signal when it
 * starts.
 */
const VARIABLE = 'LEASEHOLD_SIGIGN';
const MASK = /^[0-9a-f]{1,16}$/;
/** Greater numbers are real-time signals, which have no names. */
const LAST_STANDARD = 31;
const NEVER_IGNORED: ReadonlySet<string> = new Set(['SIGKILL', 'SIGSTOP']);
/**
 * WHY no others: only these would end the process, and a listener for SIGTSTP would keep a terminal from stopping it.
 */
const OURS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;

/** Each ignored signal once, by one of its names. Empty if the mask is unknown. */
export function readIgnored(environment: Readonly<Record<string, string | undefined>>): readonly NodeJS.Signals[] {
  const mask = environment[VARIABLE] ?? '';
  if (!MASK.test(mask)) return [];
  const bits = BigInt(`0x${mask}`);
  const found = new Map<number, NodeJS.Signals>();
  for (const [name, number] of Object.entries(constants.signals)) {
    const isIgnored = number <= LAST_STANDARD && ((bits >> BigInt(number - 1)) & 1n) === 1n;
    if (isIgnored && !NEVER_IGNORED.has(name)) found.set(number, name as NodeJS.Signals);
  }
  return [...found.values()];
}

/** The signals that ask the program to stop, except the ignored ones. */
export function stopSignals(ignored: readonly NodeJS.Signals[]): readonly NodeJS.Signals[] {
  return (['SIGTERM', 'SIGINT', 'SIGHUP'] as const).filter((signal) => !ignored.includes(signal));
}

/** Ignores the signals, as far as Node allows it. */
export function ignore(signals: readonly NodeJS.Signals[]): void {
  for (const signal of OURS) if (signals.includes(signal)) process.on(signal, () => undefined);
}
