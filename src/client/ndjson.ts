/** Reads the streamed audit log: one JSON object per line. */

import type { Decoder } from './decoders.ts';
import { LeaseholdError } from './errors.ts';

/** Many times the longest entry. */
const MAX_LINE_LENGTH = 1024 * 1024;

/**
 * Yields entries from chunks of any size; cancels the stream when the iteration stops early.
 * @throws LeaseholdError UNREACHABLE when the stream is interrupted, INVALID_RESPONSE for an invalid entry; the
 * signal's reason
 */
export async function* readEntries<T>(
  body: ReadableStream<Uint8Array>,
  decode: Decoder<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  // WHY not `for await`: streams are not iterable in every browser.
  const reader = body.getReader();
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      signal?.throwIfAborted();
      const lines = (rest + decoder.decode(value, { stream: !done })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') yield decode(JSON.parse(line));
      if (done) break;
      if (rest.length > MAX_LINE_LENGTH)
        throw new LeaseholdError('INVALID_RESPONSE', 'a line of the export is too long');
    }
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (error instanceof LeaseholdError) throw error;
    throw new LeaseholdError('UNREACHABLE', 'the export was interrupted', { cause: error });
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  // A complete export ends with a line feed.
  if (rest !== '') throw new LeaseholdError('UNREACHABLE', 'the export was interrupted in the middle of an entry');
}
