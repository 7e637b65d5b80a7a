// Overload: many connections that repeat requests after every response or rejection. A separate
// process: node overload-load.ts '{"port":…}'. Prints its results as JSON when it is told to end.
import { connect } from 'node:net';

export interface FloodJob {
  readonly port: number;
  /** Loopback addresses: the service accepts 500 connections from each. */
  readonly fromAddresses: readonly string[];
  readonly connectionsEach: number;
  /** Requests that a connection sends without waiting for responses. */
  readonly ahead: number;
  readonly token: string;
  readonly path: string;
}

export interface FloodResult {
  readonly byStatus: Readonly<Record<string, number>>;
  /** Refusals that did not say when to come again. */
  readonly withoutRetryAfter: number;
  /** The number of connections that the service closed. */
  readonly lostConnections: number;
}

const HEAD_END = '\r\n\r\n';

function flood({ port, fromAddresses, connectionsEach, ahead, token, path }: FloodJob): () => FloodResult {
  const request = Buffer.from(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}${HEAD_END}`);
  const byStatus: Record<string, number> = {};
  let withoutRetryAfter = 0;
  let lostConnections = 0;
  const take = (head: string): void => {
    const status = head.slice(9, 12);
    byStatus[status] = (byStatus[status] ?? 0) + 1;
    if (status === '503' && !/\r\nretry-after: \d/i.test(head)) withoutRetryAfter += 1;
  };
  const open = (localAddress: string): void => {
    const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true });
    let text = '';
    socket.on('connect', () => {
      socket.write(Buffer.concat(Array.from({ length: ahead }, () => request)));
    });
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      for (;;) {
        const headEnd = text.indexOf(HEAD_END);
        if (headEnd === -1) return;
        const head = text.slice(0, headEnd);
        const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
        const end = headEnd + HEAD_END.length + length;
        if (text.length < end) return;
        text = text.slice(end);
        take(head);
        socket.write(request);
      }
    });
    socket.on('error', () => undefined);
    socket.on('close', () => {
      lostConnections += 1;
    });
  };
  for (const address of fromAddresses) for (let count = 0; count < connectionsEach; count++) open(address);
  return () => ({
    byStatus,
    withoutRetryAfter,
    lostConnections,
  });
}

if (process.argv[2] !== undefined) {
  const see = flood(JSON.parse(process.argv[2]) as FloodJob);
  // Also where every connection was cut off.
  setInterval(() => undefined, 1000);
  process.on('SIGTERM', () => {
    process.stdout.write(JSON.stringify(see()), () => process.exit(0));
  });
  process.stdout.write('flooding\n');
}
