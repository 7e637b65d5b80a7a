/**
 * Over streamable HTTP, on loopback alone. Each request stands for itself: no session is kept, so that none can be stolen or piled up.
 * ORDER: how many → Host and Origin → address and method → token → size → protocol, so that a stranger costs next to nothing.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  validateHostHeader,
  validateOriginHeader,
} from '@modelcontextprotocol/server';
import { isLoopback } from '../client/address.ts';
import type { Secret } from '../core/secret.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import type { Mcp } from './server.ts';
import { createTokenCheck } from './token.ts';

const ENDPOINT = '/mcp';
const MOST_CONNECTIONS = 64;
/** Also how many streams may be open: a stream is a request that has not ended. */
const MOST_REQUESTS = 32;
const MOST_SUBSCRIPTIONS = 8;
const MOST_BODY_BYTES = 256 * 1024;

export interface ListenAddress {
  readonly host: string;
  /** 0: any that is free. */
  readonly port: number;
}

/** `HOST:PORT`, of loopback. @throws UsageError */
export function parsePlace(text: string): ListenAddress {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new UsageError('--http: must be HOST:PORT, such as 127.0.0.1:7800');
  if (!isLoopback(host)) {
    throw new UsageError(
      '--http: must be localhost, 127.0.0.1 or [::1]: a proxy with TLS on this machine, or ssh -L, brings it elsewhere',
    );
  }
  return { host, port: Number(port) };
}

export interface HttpServing {
  /** Such as `http://127.0.0.1:7800/mcp`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Listens until it is closed. `hosts` are further names that a proxy on this machine may ask for. @throws UsageError */
export async function serveOverHttp(
  mcp: Mcp,
  { host, port }: ListenAddress,
  token: Secret,
  log: (line: string) => void,
): Promise<HttpServing> {
  const isToken = await createTokenCheck(token);
  const report = (error: Error): void => log(`a request could not be handled: ${error.name}`);
  const handler = createMcpHandler(() => mcp.createServer(), {
    maxRequestBodySize: MOST_BODY_BYTES,
    maxSubscriptions: MOST_SUBSCRIPTIONS,
    onerror: report,
  });
  const answer = toNodeHandler(handler, { maxRequestBodySize: MOST_BODY_BYTES, onerror: report });
  let inFlight = 0;
  const limits = { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 30_000 };
  // By itself Node looks every 30 s only.
  const server = createServer({ ...limits, connectionsCheckingInterval: 1000 });
  server.maxConnections = MOST_CONNECTIONS;
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if (inFlight >= MOST_REQUESTS)
      return refuse(response, 503, 'too many requests are under way', { 'Retry-After': '1' });
    inFlight++;
    response.once('close', () => inFlight--);
    try {
      const { headers } = request;
      const isHost = validateHostHeader(headers.host, localhostAllowedHostnames()).ok;
      if (!isHost) return refuse(response, 421, 'the Host must be a name of loopback');
      const isOrigin = validateOriginHeader(headers.origin, localhostAllowedOrigins()).ok;
      if (!isOrigin) return refuse(response, 403, 'the Origin must be of loopback');
      if (request.url !== ENDPOINT) return refuse(response, 404, `there is only ${ENDPOINT}`);
      if (request.method !== 'POST') return refuse(response, 405, 'only POST is served', { Allow: 'POST' });
      if (!(await isToken(headers.authorization))) {
        return refuse(response, 401, 'the bearer token of this server is missing or wrong', {
          'WWW-Authenticate': 'Bearer',
        });
      }
      // The types of Node leave open what a server's request always has.
      await answer(request as IncomingMessage & { method: string; url: string }, response);
    } catch (error) {
      report(error instanceof Error ? error : new Error('unknown'));
      if (!response.headersSent) refuse(response, 500, 'the server failed');
      else response.destroy();
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new UsageError(`--http: ${host}:${port} cannot be used${errnoSuffix(error)}`)),
    );
    server.listen(port, host.replaceAll(/[[\]]/g, ''), resolve);
  });
  server.on('error', report);
  return {
    url: `http://${host}:${(server.address() as AddressInfo).port}${ENDPOINT}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      await handler.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function refuse(response: ServerResponse, status: number, message: string, headers: Record<string, string> = {}): void {
  // What was sent is not read: the connection ends with the answer.
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }));
}
