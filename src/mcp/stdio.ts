/**
 * Over standard input and output: a message a line, and nothing else on standard output. It ends when the client closes
 * its end.
 */
import { pipeline, type Readable, type Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type MessageId, splitLines } from './bounded-lines.ts';
import type { Mcp } from './server.ts';

/** Many times the longest call. */
const LONGEST_MESSAGE = 1024 * 1024;
const MOST_SUBSCRIPTIONS = 4;
/** SOURCE: JSON-RPC 2.0, 5.1 */
const INVALID_REQUEST = -32_600;

/** Resolves when the client has gone or `signal` is aborted. Whoever called then closes `mcp`. */
export async function serveOverStdio(
  mcp: Mcp,
  { stdin, stdout }: { readonly stdin: Readable; readonly stdout: Writable },
  signal: AbortSignal,
  log: (line: string) => void,
): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const refuse = (id: MessageId): void => {
    const message = `a message has at most ${LONGEST_MESSAGE} bytes`;
    log(`a message was refused: ${message}`);
    stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: INVALID_REQUEST, message } })}\n`);
  };
  const lines = splitLines(LONGEST_MESSAGE, refuse);
  class Pipe extends StdioServerTransport {
    override async close(): Promise<void> {
      await super.close();
      // WHY: an input that is open, and that nobody reads, would keep the process.
      lines.destroy();
      resolve();
    }
  }
  const handle = serveStdio(() => mcp.createServer(), {
    // With room for the end of a line.
    transport: new Pipe(lines, stdout, { maxBufferSize: LONGEST_MESSAGE + 1 }),
    maxSubscriptions: MOST_SUBSCRIPTIONS,
    // WHY only its name: an error of the parser may quote what it was given.
    onerror: (error) => log(`a message could not be handled: ${error.name}`),
  });
  // What goes wrong with it, the end of `lines` tells.
  pipeline(stdin, lines, () => undefined);
  const stop = (): void => void handle.close().then(resolve, resolve);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  await closed;
  signal.removeEventListener('abort', stop);
}
