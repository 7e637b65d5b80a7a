/** One file out of a zip archive, never more than its bound: what an archive says of its sizes is not believed. */

import { unzipSync } from 'fflate';
import { UsageError } from '../../platform/errors.ts';

const MOST_ENTRIES = 100_000;
const MOST_BYTES = 64 * 1024 * 1024;
/** JSON is packed to a tenth or a fiftieth; what claims more than this is made to fill memories. */
const MOST_RATIO = 200;
const SMALL_BYTES = 1024 * 1024;

/** Whether it begins as a zip archive. */
export function isArchive(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
}

/** `name` is the archive's, for errors. @throws UsageError */
export function readEntry(archive: Uint8Array, entry: string, name: string): Uint8Array {
  let seen = 0;
  let found = 0;
  let unpacked: Readonly<Record<string, Uint8Array>>;
  try {
    unpacked = unzipSync(archive, {
      filter: (file) => {
        // An archive may claim billions of entries that it does not have.
        if (++seen > MOST_ENTRIES) throw new UsageError(`${name}: holds more than ${MOST_ENTRIES} files`);
        if (file.name !== entry) return false;
        if (++found > 1) throw new UsageError(`${name}: holds ${entry} twice`);
        const isTooLarge = file.originalSize > MOST_BYTES;
        const isBomb = file.originalSize > SMALL_BYTES && file.originalSize > file.size * MOST_RATIO;
        if (isTooLarge || isBomb) throw new UsageError(`${name}: ${entry} is too large unpacked`);
        return true;
      },
    });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${name}: is a zip archive that cannot be read`, 'Export it again: it may have been cut off.');
  }
  const content = unpacked[entry];
  if (content === undefined) throw new UsageError(`${name}: is a zip archive without ${entry}`);
  return content;
}
