/** The audit log as it is streamed: JSON, a line each. */
import { LeaseholdError } from './errors.ts';
import type { AuditEntry } from './types.ts';

/** Many times the longest entry. */
const LONGEST_LINE = 1024 * 1024;

/** Entries as they come, cut wherever they were. @throws LeaseholdError NO_ANSWER where the stream breaks off */
export async function* readEntries(body: ReadableStream<Uint8Array>): AsyncGenerator<AuditEntry> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let rest = '';
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) if (line !== '') yield JSON.parse(line);
      if (rest.length > LONGEST_LINE) throw new LeaseholdError('BAD_ANSWER', 'a line of the export is too long');
    }
  } catch (error) {
    if (error instanceof LeaseholdError) throw error;
    throw new LeaseholdError('NO_ANSWER', 'the export broke off', { cause: error });
  }
  // An export that was whole ends with the end of a line.
  if (rest !== '') throw new LeaseholdError('NO_ANSWER', 'the export broke off in the middle of an entry');
}
