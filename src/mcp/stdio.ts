/** Serves standard input and output: one message per line, and nothing else on standard output. */
import { pipeline, type Readable, type Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type MessageId, splitLines } from './bounded-lines.ts';
import type { Mcp } from './server.ts';

/** Many times the longest call. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
const MAX_SUBSCRIPTIONS = 4;
/** SOURCE: JSON-RPC 2.0, 5.1 */
const INVALID_REQUEST = -32_600;

/** Resolves when the client closes its end or `signal` is aborted. The caller then closes `mcp`. */
export async function serveOverStdio(
  mcp: Mcp,
  { stdin, stdout }: { readonly stdin: Readable; readonly stdout: Writable },
  signal: AbortSignal,
  log: (line: string) => void,
): Promise<void> {
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const reject = (id: MessageId): void => {
    const message = `a message has at most ${MAX_MESSAGE_BYTES} bytes`;
    log(`a message was rejected: ${message}`);
    stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code: INVALID_REQUEST, message } })}\n`);
  };
  const lines = splitLines(MAX_MESSAGE_BYTES, reject);
  class Pipe extends StdioServerTransport {
    override async close(): Promise<void> {
      await super.close();
      // WHY: an open input would keep the process alive.
      lines.destroy();
      resolve();
    }
  }
  const handle = serveStdio(() => mcp.createServer(), {
    // Includes the line feed.
    transport: new Pipe(lines, stdout, { maxBufferSize: MAX_MESSAGE_BYTES + 1 }),
    maxSubscriptions: MAX_SUBSCRIPTIONS,
    // WHY the name only: the message of a parser's error may quote its input.
    onerror: (error) => log(`a message could not be handled: ${error.name}`),
  });
  // An error ends `lines`, which closes the transport.
  pipeline(stdin, lines, () => undefined);
  const stop = (): void => void handle.close().then(resolve, resolve);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  await closed;
  signal.removeEventListener('abort', stop);
}
