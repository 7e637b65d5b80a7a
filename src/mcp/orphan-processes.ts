/**
 * What a command left behind although its process group was ended: processes with a session of their own. Each command has a variable
 * that nobody can guess, which what it starts inherits, and which Linux tells of each process of the same user.
 */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

const VARIABLE = 'LEASEHOLD_MCP_RUN';
/** Who multiplies faster than he is found is not waited for for ever. */
const MOST_WALKS = 20;
const DIES_WITHIN_MS = 10;
/** WHY not one: a process that starts another and ends while /proc is read is missed, and so is the other. */
const EMPTY_WALKS = 3;

/** Of one run. */
export interface RunTag {
  /** For the environment of the command. */
  readonly variable: Readonly<Record<string, string>>;
  /** Kills what has the variable until none is found several times. Does nothing where there is no /proc. */
  end(): Promise<void>;
}

export function newMark(): RunTag {
  const id = crypto.randomUUID();
  return {
    variable: { [VARIABLE]: id },
    async end() {
      const wanted = Buffer.from(`${VARIABLE}=${id}\0`);
      let emptyWalks = 0;
      for (let walks = 0; walks < MOST_WALKS; walks++) {
        emptyWalks = (await killAll(wanted)) ? 0 : emptyWalks + 1;
        if (emptyWalks === EMPTY_WALKS) return;
        await sleep(DIES_WITHIN_MS);
      }
    },
  };
}

/** Resolves to whether there was one. */
async function killAll(wanted: Uint8Array): Promise<boolean> {
  const names = await readdir('/proc').catch(() => []);
  let hasFound = false;
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue;
    try {
      // Of others' processes it cannot be read; of one that is dead it is empty.
      if (!(await readFile(`/proc/${name}/environ`)).includes(wanted)) continue;
      hasFound = true;
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It has gone, or is none of ours.
    }
  }
  return hasFound;
}
