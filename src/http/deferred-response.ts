/** An answer that takes long to find: nothing of it is sent before it is whole, and who goes away ends the work. */
import { Readable } from 'node:stream';
import type { Reply } from './route.ts';

/** `{"data":…}`. What the work throws is answered as an error; its signal says that the client has gone. */
export function deferredReply(work: (signal: AbortSignal) => Promise<unknown>): Reply {
  const leaving = new AbortController();
  let isAsked = false;
  const stream = new Readable({
    read() {
      if (isAsked) return;
      isAsked = true;
      work(leaving.signal).then(
        (data) => {
          stream.push(JSON.stringify({ data }));
          stream.push(null);
        },
        (error: unknown) => stream.destroy(error instanceof Error ? error : new Error('thrown value')),
      );
    },
    destroy(error, done) {
      leaving.abort();
      done(error);
    },
  });
  return { stream, type: 'application/json; charset=utf-8', endsWithClient: true };
}
