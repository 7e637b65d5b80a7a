/**
 * Keeps the index of the write-ahead log (`-shm`) backed by blocks of the disk. SQLite maps that file into memory, and
 * a write to a mapped page whose blocks the disk cannot provide ends the process with SIGBUS. SQLite writes one byte to
 * each new page before it maps it, which leaves holes where blocks are smaller than a page, such as on a small ext4.
 * SOURCE: sqlite.org/walformat.html, "WAL-Index Format"; os_unix.c, unixShmMap.
 */
import { closeSync, constants, fstatSync, openSync, readSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { temporaryPath } from '../../platform/private-files.ts';
import { StoreError } from '../errors.ts';

/** More than the blocks of an index and of a few batches. */
const START_BYTES = 1024 * 1024;
const SERVING_BYTES = 256 * 1024;
/** The smallest block of a file system. The first block contains the header of the index. */
const SMALLEST_BLOCK_BYTES = 512;
const REGION_BYTES = 32 * 1024;
/** A region indexes 4096 pages of the log, so these suffice for the largest backlog of checkpoints. */
const REGIONS = 8;
const PRIVATE_FILE = 0o600;

/**
 * Checks that the disk has room to open the database, and leaves nothing. WHY written and not asked for: a quota does
 * not show in the free space of a file system. @throws StoreError
 */
export function assertDiskSpace(file: string): void {
  const probe = temporaryPath(file);
  try {
    const descriptor = openSync(probe, 'wx', PRIVATE_FILE);
    try {
      writeAll(descriptor, Buffer.alloc(START_BYTES), 0);
    } finally {
      closeSync(descriptor);
    }
  } catch (cause) {
    throw new StoreError('unavailable', `${file}: ${START_BYTES / 1024} KiB cannot be written to its disk`, { cause });
  } finally {
    rmSync(probe, { force: true });
  }
}

/** Checks the space while the database is open. @throws StoreError */
export function assertServingSpace(file: string): void {
  const { bavail, bsize } = statfsSync(dirname(file));
  if (bavail * bsize >= SERVING_BYTES) return;
  throw new StoreError('unavailable', `the disk is full: less than ${SERVING_BYTES / 1024} KiB are free`);
}

/**
 * Gives blocks to all pages of the index that the server will use, and changes nothing else. Call when the database is
 * open, before anything else uses it. Returns the descriptor of the index, which the caller closes after the database.
 * WHY: closing any descriptor of a file ends all locks that the process has on it, and without the lock of SQLite the
 * next program that opens the database cuts the index off under this process, which ends it with SIGBUS.
 * SOURCE: sqlite.org/howtocorrupt.html, 2.2; os_unix.c, unixLockSharedMemory.
 */
export function reserveWalIndex(file: string): number {
  const descriptor = openSync(`${file}-shm`, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    const { size } = fstatSync(descriptor);
    // WHY not from its begin: other programs that read the database write their marks there, and SQLite has filled it.
    const mapped = Buffer.alloc(Math.max(0, size - SMALLEST_BLOCK_BYTES));
    const length = readSync(descriptor, mapped, 0, mapped.length, SMALLEST_BLOCK_BYTES);
    writeAll(descriptor, mapped.subarray(0, length), SMALLEST_BLOCK_BYTES);
    if (size < REGIONS * REGION_BYTES) writeAll(descriptor, Buffer.alloc(REGIONS * REGION_BYTES - size), size);
    return descriptor;
  } catch (error) {
    closeSync(descriptor);
    throw error;
  }
}

function writeAll(descriptor: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done);
}
