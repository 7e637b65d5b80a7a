/** The audit log as it is streamed: JSON, a line each. */

import type { Decoder } from './decoders.ts';
import { LeaseholdError } from './errors.ts';

/** Many times the longest entry. */
const LONGEST_LINE = 1024 * 1024;

/**
 * Entries as they come, cut wherever they were; who stops early lets the stream go.
 * @throws LeaseholdError UNREACHABLE where the stream breaks off, INVALID_RESPONSE for what is no entry; the signal's reason
 */
export async function* readEntries<T>(
  body: ReadableStream<Uint8Array>,
  decode: Decoder<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  // WHY not by for await: not every browser's streams can be iterated.
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
      if (rest.length > LONGEST_LINE) throw new LeaseholdError('INVALID_RESPONSE', 'a line of the export is too long');
    }
  } catch (error) {
    if (signal?.aborted === true) throw signal.reason;
    if (error instanceof LeaseholdError) throw error;
    throw new LeaseholdError('UNREACHABLE', 'the export broke off', { cause: error });
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  // An export that was whole ends with the end of a line.
  if (rest !== '') throw new LeaseholdError('UNREACHABLE', 'the export broke off in the middle of an entry');
}
