/**
 * The directory of the tests' temporary files: in memory if the system has room there. WHY: servers and databases
 * write small files and sync them, which takes most of the time of many tests on a disk. The operating system keeps the
 * writes of a killed process either way, and no test cuts the machine's power.
 */
import { accessSync, constants, existsSync, readFileSync, statfsSync } from 'node:fs';

const MEMORY = '/dev/shm';
/** More than all tests have at a time. */
const MIN_FREE_BYTES = 4 * 2 ** 30;
const MOUNTS = '/proc/self/mounts';

/** Null where the system's usual one is to be used. */
export function findMemoryDirectory(): string | null {
  if (!existsSync(MEMORY) || !existsSync(MOUNTS)) return null;
  const mounts = readFileSync(MOUNTS, 'utf8').split('\n');
  const [, , type, options = ''] = mounts.findLast((line) => line.split(' ')[1] === MEMORY)?.split(' ') ?? [];
  // Containers often mount it without the right to run programs, which tests put there.
  if (type !== 'tmpfs' || options.split(',').includes('noexec')) return null;
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize >= MIN_FREE_BYTES && isWritable() ? MEMORY : null;
}

function isWritable(): boolean {
  try {
    accessSync(MEMORY, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
