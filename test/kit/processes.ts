/**
 * Processes by their ids: lists children, sends signals to processes that may have ended, and a guard that outlives
 * this process.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_INTERVAL_MS = 10;

interface Listed {
  readonly pid: number;
  readonly parent: number;
  /** A letter: `T` is stopped, `Z` is dead and not yet collected by its parent. */
  readonly state: string;
}

function listProcesses(): Listed[] {
  // WHY not ps alone: images of containers often lack it.
  const lines = existsSync('/proc/self/stat') ? readProc() : runPs();
  return lines.flatMap((line) => {
    const [, pid, state = '', parent] = /^\s*(\d+) (?:\(.*\) )?(\w)\S* +(\d+)/s.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), state, parent: Number(parent) }];
  });
}

function readProc(): string[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) ? [readFileSync(`/proc/${name}/stat`, 'utf8')] : [];
    } catch {
      return []; // it ended just now
    }
  });
}

function runPs(): string[] {
  return execFileSync('ps', ['-A', '-o', 'pid=,stat=,ppid='], { encoding: 'utf8' }).replace(/ +/g, ' ').split('\n');
}

const isAlive = ({ state }: Listed): boolean => !/[ZX]/.test(state);

export function childrenOf(pid: number): number[] {
  return listProcesses()
    .filter((listed) => listed.parent === pid && isAlive(listed))
    .map((child) => child.pid);
}

export function haveExited(pids: readonly number[]): boolean {
  return !listProcesses().some((listed) => pids.includes(listed.pid) && isAlive(listed));
}

/** Sends the signal to the processes that still exist. */
export function signal(pids: readonly number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }
}

/** Stops a process so that it cannot fork; resolves when it is stopped. */
export async function freeze(pid: number): Promise<void> {
  signal([pid], 'SIGSTOP');
  const isStill = () =>
    !listProcesses().some((listed) => listed.pid === pid && isAlive(listed) && listed.state !== 'T');
  await until(isStill, 120_000, () => `process ${pid} does not stop`);
}

/** Polls until the condition holds. @throws Error with the message after that time */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  withinMs: number,
  message: () => string,
): Promise<void> {
  const deadline = performance.now() + withinMs;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(message());
    await sleep(POLL_INTERVAL_MS);
  }
}

/**
 * A shell script. At the end of its input, which comes even if this process is killed, it ends the process that it was
 * last given and removes the directory. SIGQUIT makes PostgreSQL end its children, by force after five seconds, and
 * leave no shared memory; it deletes postmaster.pid last. WHY not only the process id: in a container no process may
 * reap zombies.
 * WHY the removal is repeated: initdb may still be writing.
 */
const GUARD = `
pid=
while IFS= read -r line; do pid=$line; done
if [ -n "$pid" ]; then
  kill -QUIT "$pid"
  kill -CONT "$pid"
  tries=0
  while [ "$tries" -lt 100 ] && [ -e "$1/data/postmaster.pid" ] && kill -0 "$pid"; do sleep 0.1; tries=$((tries + 1)); done
fi
tries=0
while rm -rf -- "$1"; [ -e "$1" ] && [ "$tries" -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
`;

export interface Guard {
  /** Sets the process to end; null after it has ended, because its id may then be reused. */
  watch(pid: number | null): void;
  /** Ends the guard, which removes the directory; resolves when it has ended. */
  dismiss(): Promise<void>;
}

/** WHY a shell: it takes little memory, and a failure of the test runner does not end it. */
export function guardDirectory(directory: string): Guard {
  const guard = spawn('sh', ['-c', GUARD, 'guard', directory], {
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true, // a terminal's Ctrl-C is not for the guard
    cwd: '/',
  });
  let hasEnded = false;
  guard.once('exit', () => {
    hasEnded = true;
  });
  guard.once('error', () => {
    hasEnded = true;
  });
  guard.stdin.on('error', () => {}); // it was killed: then it can't be told anything
  guard.unref();
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return {
    watch: (pid) => void guard.stdin.write(`${pid ?? ''}\n`),
    async dismiss() {
      guard.stdin.end();
      await until(
        () => hasEnded,
        30_000,
        () => `the guard of ${directory} does not end`,
      );
    },
  };
}
