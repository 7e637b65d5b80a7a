/** A regular file, read whole and within its bound: what has become a link or a pipe is not opened, and never waited for. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

/** `large`: it has more bytes than that. `other`: it is no regular file. Rejects where it can't be opened. */
export async function readRegularFile(path: string, mostBytes: number): Promise<Buffer | 'large' | 'other'> {
  await using handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const status = await handle.stat();
  if (!status.isFile()) return 'other';
  if (status.size > mostBytes) return 'large';
  // One more, to see that it has not grown.
  const buffer = Buffer.alloc(status.size + 1);
  let length = 0;
  for (let read = -1; read !== 0 && length < buffer.length; length += read) {
    read = (await handle.read(buffer, length, buffer.length - length, null)).bytesRead;
  }
  return buffer.subarray(0, length);
}
