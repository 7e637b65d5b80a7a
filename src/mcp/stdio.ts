/** Over standard input and output: a message a line, and nothing else on standard output. It ends when the client closes its end. */
import type { Readable, Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Mcp } from './server.ts';

/** Many times the longest call. */
const LONGEST_MESSAGE = 1024 * 1024;
const MOST_SUBSCRIPTIONS = 4;

/** Resolves when the client has gone or `signal` is aborted. Whoever called then closes `mcp`. */
export async function serveOverStdio(
  mcp: Mcp,
  streams: { readonly stdin: Readable; readonly stdout: Writable },
  signal: AbortSignal,
  log: (line: string) => void,
): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  class Pipe extends StdioServerTransport {
    override async close(): Promise<void> {
      await super.close();
      resolve();
    }
  }
  const handle = serveStdio(() => mcp.createServer(), {
    transport: new Pipe(streams.stdin, streams.stdout, { maxBufferSize: LONGEST_MESSAGE }),
    maxSubscriptions: MOST_SUBSCRIPTIONS,
    // WHY only its name: an error of the parser may quote what it was given.
    onerror: (error) => log(`a message could not be handled: ${error.name}`),
  });
  const stop = (): void => void handle.close().then(resolve, resolve);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  await closed;
  signal.removeEventListener('abort', stop);
}
