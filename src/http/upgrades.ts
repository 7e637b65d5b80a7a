/**
 * WebSocket upgrades, at base URLs only: the request gets a response like any other, so that it is guarded,
 * authenticated and, if it is rejected, answered in the same way. An `Upgrade` header elsewhere is ignored.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { http } from '../platform/node-http.ts';
import { BASE_URL_PREFIX } from '../vault/use/base-url.ts';
import { endConnection, ignoreError } from './connections.ts';

const upgrades = new WeakSet<IncomingMessage>();

/** An option of Node's servers: whether a request with an `Upgrade` header is passed to the event `upgrade`. */
export function shouldUpgrade({ method, url, headers }: IncomingMessage): boolean {
  const isWebSocket = headers.upgrade?.toLowerCase() === 'websocket';
  return isWebSocket && method === 'GET' && url?.startsWith(BASE_URL_PREFIX) === true;
}

/** Whether the request asks for a WebSocket; its socket is then no longer read as HTTP. */
export function isUpgrade(request: IncomingMessage): boolean {
  return upgrades.has(request);
}

export function handleUpgrades(server: Server): void {
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', ignoreError);
    const response = new http.ServerResponse(request);
    try {
      response.assignSocket(request.socket);
    } catch {
      // An earlier request of the connection has no complete response.
      socket.destroy();
      return;
    }
    if (head.length > 0) socket.unshift(head);
    upgrades.add(request);
    response.shouldKeepAlive = false;
    // WHY not `finish`: a write to a TLS client that resets the connection may never complete.
    response.on('prefinish', () => endConnection(request.socket));
    server.emit('request', request, response);
  });
}
