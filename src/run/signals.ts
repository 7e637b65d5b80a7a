/** Forwards signals that this process receives to the program. */
import { readFileSync } from 'node:fs';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
/** A terminal sends these to every process in the foreground, including the program. */
const FROM_TERMINALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

type Receiver = (signal: NodeJS.Signals) => void;

/** Handles signals until `release`, so that none ends this process before it has cleaned up. */
export class Signals {
  #receiver: Receiver;
  readonly #listener: Receiver = (signal) => {
    if (!this.#ignored.has(signal)) this.#receiver(signal);
  };
  readonly #ignored: ReadonlySet<NodeJS.Signals>;

  /** Signals in `ignored` have no effect. */
  constructor(receiver: Receiver, ignored: readonly NodeJS.Signals[]) {
    this.#receiver = receiver;
    this.#ignored = new Set(ignored);
    for (const signal of FORWARDED) process.on(signal, this.#listener);
  }

  /** Forwards signals to a program in the same process group, which receives the terminal's signals directly. */
  forwardToSameGroup(send: Receiver): void {
    this.sendTo((signal) => {
      if (!(FROM_TERMINALS.has(signal) && isInForeground())) send(signal);
    });
  }

  sendTo(receiver: Receiver): void {
    this.#receiver = receiver;
  }

  release(): void {
    for (const signal of FORWARDED) process.off(signal, this.#listener);
  }
}

/** Whether this process group is in the terminal's foreground; false without a terminal. */
export function isInForeground(): boolean {
  try {
    // SOURCE: proc_pid_stat(5). The fields after the name in brackets are state, parent, group, session, terminal, and
    // the terminal's foreground group.
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return process.stdin.isTTY === true;
  }
}
