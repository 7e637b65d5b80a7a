/**
 * A response that takes long to compute. Nothing is sent before it is complete, and the work stops when the client
 * disconnects.
 */
import { Readable } from 'node:stream';
import type { Reply } from './route.ts';

/** Replies `{"data":…}`, or the error that `work` throws. The signal aborts when the client disconnects. */
export function deferredReply(work: (signal: AbortSignal) => Promise<unknown>): Reply {
  const disconnected = new AbortController();
  let hasStarted = false;
  const stream = new Readable({
    read() {
      if (hasStarted) return;
      hasStarted = true;
      work(disconnected.signal).then(
        (data) => {
          stream.push(JSON.stringify({ data }));
          stream.push(null);
        },
        (error: unknown) => stream.destroy(error instanceof Error ? error : new Error('thrown value')),
      );
    },
    destroy(error, done) {
      disconnected.abort();
      done(error);
    },
  });
  return { stream, type: 'application/json; charset=utf-8', endsWithClient: true };
}
