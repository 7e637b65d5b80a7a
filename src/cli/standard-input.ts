/** Reads standard input or another stream to its end, up to a size limit or until a signal aborts. */

import type { Readable } from 'node:stream';
import { UsageError } from '../platform/errors.ts';
import type { Question } from './prompt.ts';

export interface Bounds {
  readonly mostBytes: number;
  /** Message for longer input. */
  readonly tooMuch: string;
  readonly signal: AbortSignal;
}

/** @throws UsageError `tooMuch` beyond `mostBytes`; the signal's reason when it aborts */
export function readStandardInput(
  { terminal: { stdin }, signal }: Question,
  mostBytes: number,
  tooMuch: string,
): Promise<Buffer> {
  return readStream(stdin, { mostBytes, tooMuch, signal });
}

/** @throws like `readStandardInput`, and errors of the stream */
export async function readStream(stream: Readable, { mostBytes, tooMuch, signal }: Bounds): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Only destroying the stream ends a read that waits for data.
  const stop = (): void => void stream.destroy();
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    for await (const chunk of stream) {
      const part = Buffer.from(chunk);
      bytes += part.length;
      if (bytes > mostBytes) throw new UsageError(tooMuch);
      chunks.push(part);
    }
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    signal.removeEventListener('abort', stop);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks);
}
