/** Standard input, or another stream, read to its end: no more of it than there may be, and no longer than until somebody breaks off. */

import type { Readable } from 'node:stream';
import { UsageError } from '../platform/errors.ts';
import type { Question } from './prompt.ts';

export interface Bounds {
  readonly mostBytes: number;
  /** What is said where there are more. */
  readonly tooMuch: string;
  readonly signal: AbortSignal;
}

/** @throws UsageError where there is more of it than `mostBytes`, worded as `tooMuch`; the signal's reason once that is aborted */
export function readStandardInput(
  { terminal: { stdin }, signal }: Question,
  mostBytes: number,
  tooMuch: string,
): Promise<Buffer> {
  return readStream(stdin, { mostBytes, tooMuch, signal });
}

/** @throws as `readStandardInput`; what the stream fails with */
export async function readStream(stream: Readable, { mostBytes, tooMuch, signal }: Bounds): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Nothing may ever come: only closing it ends the wait.
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
