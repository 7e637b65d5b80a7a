/**
 * Limits connections, in total and per address. If a new one exceeds a limit, the unauthenticated connection that was
 * idle longest is closed. The new one gets 503 only if all others are authenticated.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { writeError } from './connections.ts';
import { defaultError } from './errors.ts';

const MAX_CONNECTIONS = 4096;
const MAX_CONNECTIONS_PER_ADDRESS = 500;

interface Connection {
  readonly address: string;
  /** Closes the connection and stops counting it. */
  close(): void;
}

export class ConnectionLimits {
  /** Connections that have not sent a valid token, longest idle first. */
  readonly #unauthenticated = new Map<unknown, Connection>();
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  constructor(server: Server, newRequestId: () => string) {
    server.on('connection', (socket: Socket) => {
      const address = socket.remoteAddress ?? 'local';
      if (this.#makeRoom(address)) this.#add(address, socket);
      else writeError(socket, defaultError('UNAVAILABLE'), newRequestId());
    });
    // Prepended, so that it runs before the framework's listener.
    server.prependListener('request', ({ socket }, response) => response.once('close', () => this.#idle(socket)));
  }

  /** Marks the connection as authenticated, so that it is not closed for a new one. */
  keep(socket: Socket): void {
    this.#unauthenticated.delete(keyOf(socket));
  }

  #makeRoom(address: string): boolean {
    // All clients of a Unix socket have the same address.
    const limit = address === 'local' ? MAX_CONNECTIONS : MAX_CONNECTIONS_PER_ADDRESS;
    const isAddressFull = (this.#byAddress.get(address) ?? 0) >= limit;
    if (!isAddressFull && this.#total < MAX_CONNECTIONS) return true;
    for (const connection of this.#unauthenticated.values()) {
      if (isAddressFull && connection.address !== address) continue;
      connection.close();
      return true;
    }
    return false;
  }

  #add(address: string, socket: Socket): void {
    const key = keyOf(socket);
    let isOpen = true;
    const release = (): void => {
      if (!isOpen) return;
      isOpen = false;
      this.#unauthenticated.delete(key);
      this.#total -= 1;
      const left = (this.#byAddress.get(address) ?? 1) - 1;
      if (left > 0) this.#byAddress.set(address, left);
      else this.#byAddress.delete(address);
    };
    const close = (): void => {
      release();
      socket.destroy();
    };
    this.#total += 1;
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1);
    this.#unauthenticated.set(key, { address, close });
    socket.once('close', release);
  }

  /** Records that a response has ended, from which on the connection is idle. */
  #idle(socket: Socket): void {
    const key = keyOf(socket);
    const connection = this.#unauthenticated.get(key);
    if (connection === undefined) return;
    this.#unauthenticated.delete(key);
    this.#unauthenticated.set(key, connection);
  }
}

/** The key is equal for a connection and the TLS socket on top of it. */
function keyOf(socket: Socket): unknown {
  return socket.remoteAddress === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`;
}
