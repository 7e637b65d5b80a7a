/** Signals that are sent to us while a program runs: they are meant for it. */
import { readFileSync } from 'node:fs';

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
/** A terminal sends these to all processes in its foreground, the program among them. */
const FROM_TERMINALS: ReadonlySet<NodeJS.Signals> = new Set(['SIGINT', 'SIGQUIT']);

type Receiver = (signal: NodeJS.Signals) => void;

/** Takes them from now on until `release`: nothing of ours ends by one before it has cleaned up. */
export class Signals {
  #receiver: Receiver;
  readonly #listener: Receiver = (signal) => {
    if (!this.#ignored.has(signal)) this.#receiver(signal);
  };
  readonly #ignored: ReadonlySet<NodeJS.Signals>;

  /** Nobody receives those that are ignored, and nobody ends by them. */
  constructor(receiver: Receiver, ignored: readonly NodeJS.Signals[]) {
    this.#receiver = receiver;
    this.#ignored = new Set(ignored);
    for (const signal of FORWARDED) process.on(signal, this.#listener);
  }

  /** To a program in our own group of processes: what the terminal sends reaches it without us. */
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

/** Whether our group is the one that the terminal's keys go to; false without a terminal. */
export function isInForeground(): boolean {
  try {
    // SOURCE: proc_pid_stat(5). Behind the name in brackets: state, parent, group, session, terminal, the terminal's foreground group.
    const stat = readFileSync('/proc/self/stat', 'latin1');
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foreground;
  } catch {
    return process.stdin.isTTY === true;
  }
}
