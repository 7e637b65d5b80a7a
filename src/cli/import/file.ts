/** The file that is imported: read once, whole, no larger than its bound, and as UTF-8 or not at all. */
import { open } from 'node:fs/promises';
import { Mistake } from '../mistake.ts';

const MOST_BYTES = 64 * 1024 * 1024;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** @throws Mistake where it can't be read, is no file, or is larger than 64 MiB */
export async function readSourceFile(file: string): Promise<Uint8Array> {
  try {
    await using handle = await open(file, 'r');
    const status = await handle.stat();
    if (!status.isFile()) throw new Mistake(`${file}: is no file`);
    if (status.size > MOST_BYTES) throw tooLarge(file);
    // WHY not readFile: a file can grow while it is read.
    const bytes = new Uint8Array(status.size + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await handle.read(bytes, length, bytes.length - length, null);
      if (bytesRead === 0) return bytes.subarray(0, length);
      length += bytesRead;
      if (length === bytes.length) throw new Mistake(`${file}: was written to while it was read; try again`);
    }
  } catch (error) {
    if (error instanceof Mistake) throw error;
    throw new Mistake(`${file}: cannot be read (${codeOf(error)})`);
  }
}

/** All of a stream, within the same bound. @throws Mistake */
export async function readStream(stream: AsyncIterable<Uint8Array | string>): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    const part = Buffer.from(chunk as Uint8Array);
    length += part.length;
    if (length > MOST_BYTES) throw tooLarge('standard input');
    chunks.push(part);
  }
  return Buffer.concat(chunks);
}

/** Without the mark of byte order. @throws Mistake for what is no UTF-8 */
export function decode(bytes: Uint8Array, name: string): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new Mistake(`${name}: is no UTF-8`, 'Convert it first, such as with iconv -t UTF-8.');
  }
}

function tooLarge(file: string): Mistake {
  return new Mistake(`${file}: is larger than ${MOST_BYTES / 1024 / 1024} MiB`);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown reason';
}
