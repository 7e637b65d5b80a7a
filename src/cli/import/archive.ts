/** Reads one file of a zip archive within bounds. The sizes that an archive declares are not trusted. */

import { unzipSync } from 'fflate';
import { UsageError } from '../../platform/errors.ts';

const MAX_ENTRIES = 100_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** JSON compresses ten to fifty times; a higher ratio marks a zip bomb. */
const MAX_RATIO = 200;
/** Below this size the ratio is not checked. */
const SMALL_BYTES = 1024 * 1024;

/** Whether the bytes begin with the signature of a zip archive. */
export function isArchive(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] === 3 && bytes[3] === 4;
}

/** `name` is the name of the archive, for errors. @throws UsageError */
export function readEntry(archive: Uint8Array, entry: string, name: string): Uint8Array {
  let entries = 0;
  let matches = 0;
  let unpacked: Readonly<Record<string, Uint8Array>>;
  try {
    unpacked = unzipSync(archive, {
      filter: (file) => {
        // An archive may declare billions of entries that it does not have.
        if (++entries > MAX_ENTRIES) throw new UsageError(`${name}: contains more than ${MAX_ENTRIES} files`);
        if (file.name !== entry) return false;
        if (++matches > 1) throw new UsageError(`${name}: contains ${entry} twice`);
        const isTooLarge = file.originalSize > MAX_BYTES;
        const isBomb = file.originalSize > SMALL_BYTES && file.originalSize > file.size * MAX_RATIO;
        if (isTooLarge || isBomb) throw new UsageError(`${name}: ${entry} is too large when unpacked`);
        return true;
      },
    });
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${name}: the zip archive cannot be read`, 'Export it again; the file may be incomplete.');
  }
  const content = unpacked[entry];
  if (content === undefined) throw new UsageError(`${name}: the zip archive does not contain ${entry}`);
  return content;
}
