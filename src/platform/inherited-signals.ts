/** Signals that were ignored when we were started, as `nohup` and `trap ''` do it: they stay so, for us and for what we run. */
import { constants } from 'node:os';

/** From `scripts/leasehold.mjs`: SigIgn of proc_pid_status(5). WHY not read here: Node has set everything to its default by now. */
const VARIABLE = 'LEASEHOLD_SIGIGN';
const MASK = /^[0-9a-f]{1,16}$/;
/** Behind them are those for real time, which have no names. */
const LAST_STANDARD = 31;
const NEVER_IGNORED: ReadonlySet<string> = new Set(['SIGKILL', 'SIGSTOP']);
/** WHY no others: these would end us; and whoever listens to a stop meets it in the middle of each call. */
const OURS = ['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGALRM'] as const;

/** Each once, by one of its names. None where nobody could say. */
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

/** By which people and systems tell us to stop, but for those that were ignored. */
export function stopSignals(ignored: readonly NodeJS.Signals[]): readonly NodeJS.Signals[] {
  return (['SIGTERM', 'SIGINT', 'SIGHUP'] as const).filter((signal) => !ignored.includes(signal));
}

/** As far as Node lets us: from now on they do nothing here. */
export function ignore(signals: readonly NodeJS.Signals[]): void {
  for (const signal of OURS) if (signals.includes(signal)) process.on(signal, () => undefined);
}
