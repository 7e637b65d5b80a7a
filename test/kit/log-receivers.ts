/** Receivers of log streams on real sockets: syslog over TCP or TLS, and HTTP. */
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createPlainServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Scope } from './directory.ts';

export interface LogEntry {
  readonly seq: number;
  readonly hmac: string;
  readonly event_type: string;
  readonly timestamp: string;
  readonly result: string;
}

export interface SyslogReceiver {
  readonly port: number;
  /** The messages in the order of arrival, without their lengths. */
  readonly messages: readonly string[];
  /** Cuts all connections without reading the rest. */
  cut(): void;
  /** While true, connections are accepted and nothing is read. */
  hangs: boolean;
  /** The next connections are accepted, and cut a moment later without having been read. */
  losing: number;
}

/** Long enough for entries to arrive in the system of the receiver. */
const LOSING_MS = 200;

/** Frames with octet counts. SOURCE: RFC 6587, section 3.4.1. */
export async function startSyslogReceiver(
  scope: Scope,
  tls: { readonly certFile: string; readonly keyFile: string } | null = null,
): Promise<SyslogReceiver> {
  const messages: string[] = [];
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    if (receiver.losing > 0) {
      receiver.losing -= 1;
      setTimeout(() => socket.destroy(), LOSING_MS);
      return;
    }
    if (receiver.hangs) {
      socket.pause();
      return;
    }
    let rest = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      rest += chunk;
      for (;;) {
        const [head = '', digits = ''] = /^([1-9]\d{0,6}) /.exec(rest) ?? [];
        const end = head.length + Number(digits);
        if (head === '' && rest.length > 8) throw new Error(`no length in front: ${rest.slice(0, 20)}`);
        if (head === '' || rest.length < end) return;
        messages.push(rest.slice(head.length, end));
        rest = rest.slice(end);
      }
    });
  };
  const server =
    tls === null
      ? createPlainServer(accept)
      : createTlsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }, accept);
  const receiver = {
    port: await listen(scope, server, () => cut()),
    messages,
    hangs: false,
    losing: 0,
    cut: () => cut(),
  };
  function cut(): void {
    for (const socket of sockets) socket.destroy();
  }
  return receiver;
}

export interface HttpCall {
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  readonly body: string;
}

/** `respond` gets each complete request; without a response it hangs. It does not close idle connections. */
export async function startHttpReceiver(
  scope: Scope,
  respond: (call: HttpCall, response: ServerResponse) => void,
): Promise<number> {
  const server = createHttpServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      respond({ headers: request.headers, url: request.url ?? '', body: Buffer.concat(chunks).toString() }, response);
    });
  });
  server.keepAliveTimeout = 0;
  return listen(scope, server, () => server.closeAllConnections());
}

async function listen(scope: Scope, server: Server, cut: () => void): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scope.after(async () => {
    cut();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Waits until the condition holds; only a hang reaches two minutes. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 120_000;
  while (!(await condition())) {
    if (performance.now() > endsAt) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether the entries of each connection are in order, and none from 1 to `last` is missing; some may repeat. */
export function assertComplete(seqs: readonly number[], last: number): void {
  const seen = new Set(seqs);
  const missing = Array.from({ length: last }, (_, index) => index + 1).filter((seq) => !seen.has(seq));
  if (missing.length > 0) throw new Error(`${missing.length} entries are missing, first ${missing[0]}`);
  let highest = 0;
  for (const seq of seqs) {
    if (seq > highest + 1) throw new Error(`entry ${seq} came after ${highest}`);
    highest = Math.max(highest, seq);
  }
}
