/** Serves standard input and output: one message per line, and nothing else on standard output. */
import { pipeline, type Readable, Transform, type Writable } from 'node:stream';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Mcp } from './server.ts';

/** Far above the length of any valid call. */
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
  const reject = (): void => {
    const message = `a message has at most ${MAX_MESSAGE_BYTES} bytes`;
    log(`a message was rejected: ${message}`);
    stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: INVALID_REQUEST, message } })}\n`);
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
    // The limit includes the line feed.
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

/**
 * Emits each line with its line feed as one chunk. A line of more than `maxBytes` is discarded, and `reject` is called
 * at its end. WHY: the SDK's reader stops permanently when its buffer is full.
 */
export function splitLines(maxBytes: number, reject: () => void): Transform {
  // WHY one buffer: a client that writes single bytes would otherwise cause a million allocations.
  const line = Buffer.alloc(maxBytes);
  let length = 0;
  let isTooLong = false;
  const add = (part: Uint8Array): void => {
    const kept = part.subarray(0, maxBytes - length);
    line.set(kept, length);
    length += kept.length;
    isTooLong ||= kept.length < part.length;
  };
  return new Transform({
    readableObjectMode: true,
    transform(chunk: Buffer, _encoding, done) {
      let from = 0;
      for (let to = chunk.indexOf('\n'); to !== -1; to = chunk.indexOf('\n', from)) {
        add(chunk.subarray(from, to));
        if (isTooLong) reject();
        else this.push(Buffer.concat([line.subarray(0, length), Buffer.from('\n')]));
        [from, length, isTooLong] = [to + 1, 0, false];
      }
      add(chunk.subarray(from));
      done();
    },
  });
}
