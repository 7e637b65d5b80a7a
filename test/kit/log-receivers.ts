/** Receivers of log streams on real sockets, and of other requests of the service. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { type Scope, temporaryDirectory } from './directory.ts';

export interface LogEntry {
  readonly seq: number;
  readonly hmac: string;
  readonly event_type: string;
  readonly timestamp: string;
  readonly result: string;
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
  tls: { readonly certFile: string; readonly keyFile: string } | null = null,
): Promise<number> {
  const listener: RequestListener = (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      respond({ headers: request.headers, url: request.url ?? '', body: Buffer.concat(chunks).toString() }, response);
    });
  };
  const server =
    tls === null
      ? createServer(listener)
      : createTlsServer({ cert: readFileSync(tls.certFile), key: readFileSync(tls.keyFile) }, listener);
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

export const WEBHOOK_KEY = Buffer.alloc(32, 7);

/** The flags for a webhook. */
export function webhookStream(scope: Scope, url: string): string[] {
  const file = join(temporaryDirectory(scope), 'secret');
  writeFileSync(file, `whsec_${WEBHOOK_KEY.toString('base64')}\n`, { mode: 0o600 });
  return ['--log-stream', `webhook+${url}`, '--log-stream-secret-file', file];
}

/** Waits until the condition holds; only a hang reaches two minutes. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + 120_000;
  for (let pauseMs = 10; !(await condition()); pauseMs = Math.min(160, 1.5 * pauseMs)) {
    if (performance.now() > endsAt) throw new Error('it did not happen in time');
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
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
