/**
 * Serves streamable HTTP on loopback only. Requests are independent; there are no sessions that could be stolen or
 * accumulate. ORDER: number of requests → Host and Origin → path and method → token → size → protocol, so that
 * unauthenticated requests are cheap.
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
const MAX_CONNECTIONS = 64;
/** Includes open streams, which are requests that have not ended. */
const MAX_REQUESTS = 32;
const MAX_SUBSCRIPTIONS = 8;
const MAX_BODY_BYTES = 256 * 1024;

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

/** Parses `HOST:PORT` of loopback. @throws UsageError */
export function parseListenAddress(text: string): ListenAddress {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new UsageError('--http: must be HOST:PORT, such as 127.0.0.1:7800');
  if (!isLoopback(host)) {
    throw new UsageError(
      '--http: must be localhost, 127.0.0.1 or [::1]; for other machines use ssh -L or a proxy with TLS on this one',
    );
  }
  return { host, port: Number(port) };
}

export interface HttpServing {
  /** Such as `http://127.0.0.1:7800/mcp`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Listens until `close`. @throws UsageError */
export async function serveOverHttp(
  mcp: Mcp,
  { host, port }: ListenAddress,
  token: Secret,
  log: (line: string) => void,
): Promise<HttpServing> {
  const isToken = await createTokenCheck(token);
  const report = (error: Error): void => log(`a request could not be handled: ${error.name}`);
  const handler = createMcpHandler(() => mcp.createServer(), {
    maxRequestBodySize: MAX_BODY_BYTES,
    maxSubscriptions: MAX_SUBSCRIPTIONS,
    onerror: report,
  });
  const answer = toNodeHandler(handler, { maxRequestBodySize: MAX_BODY_BYTES, onerror: report });
  let inFlight = 0;
  const limits = { maxHeaderSize: 16_384, headersTimeout: 10_000, requestTimeout: 30_000 };
  // Node's default is 30 s.
  const server = createServer({ ...limits, connectionsCheckingInterval: 1000 });
  server.maxConnections = MAX_CONNECTIONS;
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    response.setHeader('Cache-Control', 'no-store');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if (inFlight >= MAX_REQUESTS) return refuse(response, 503, 'too many requests in flight', { 'Retry-After': '1' });
    inFlight++;
    response.once('close', () => inFlight--);
    try {
      const { headers } = request;
      const isHost = validateHostHeader(headers.host, localhostAllowedHostnames()).ok;
      if (!isHost) return refuse(response, 421, 'the Host must be a name of loopback');
      const isOrigin = validateOriginHeader(headers.origin, localhostAllowedOrigins()).ok;
      if (!isOrigin) return refuse(response, 403, 'the Origin must be of loopback');
      if (request.url !== ENDPOINT) return refuse(response, 404, `not found; the endpoint is ${ENDPOINT}`);
      if (request.method !== 'POST') return refuse(response, 405, 'the method must be POST', { Allow: 'POST' });
      if (!(await isToken(headers.authorization))) {
        return refuse(response, 401, 'the bearer token of this server is missing or wrong', {
          'WWW-Authenticate': 'Bearer',
        });
      }
      // Node's types make optional what requests of a server always have.
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
  // The request's body is not read, so the connection is closed.
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close', ...headers });
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32_000, message }, id: null }));
}
