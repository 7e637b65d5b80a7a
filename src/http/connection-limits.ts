/**
 * Limits connections, in total and per address. If a new one exceeds a limit, the unprotected connection that was idle
 * longest is closed. The new one receives 503 only if all others are protected. Connections with the administrator's
 * token are protected, and a limited number of connections of each agent, so that no agent can lock out the others of
 * its address.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { AuthContext } from '../core/identity.ts';
import type { PrincipalName } from '../core/names.ts';
import { writeError } from './connections.ts';
import { defaultError } from './errors.ts';

const MAX_CONNECTIONS = 4096;
const MAX_CONNECTIONS_PER_ADDRESS = 500;
const MAX_PROTECTED_PER_AGENT = 100;

interface Connection {
  readonly address: string;
  agentName: PrincipalName | null;
  close(): void;
}

export class ConnectionLimits {
  readonly #open = new Map<unknown, Connection>();
  /** Lookups by the request's socket. WHY not by the key alone: each request would build and hash its text. */
  readonly #bySocket = new WeakMap<Socket, Connection>();
  /** Longest idle first. */
  readonly #unprotected = new Set<Connection>();
  readonly #protectedByAgent = new Map<PrincipalName, number>();
  readonly #byAddress = new Map<string, number>();
  #total = 0;

  constructor(server: Server, newRequestId: () => string) {
    server.on('connection', (socket: Socket) => {
      const address = socket.remoteAddress ?? 'local';
      if (this.#makeRoom(address)) this.#add(address, socket);
      else writeError(socket, defaultError('UNAVAILABLE'), newRequestId());
    });
  }

  get total(): number {
    return this.#total;
  }

  /** Marks the connection as authenticated, so that it is not closed for a new one unless its agent has too many. */
  protect(socket: Socket, auth: AuthContext): void {
    const connection = this.#find(socket);
    if (connection === undefined || !this.#unprotected.has(connection)) return;
    if (auth.kind !== 'admin') {
      const { agentName } = auth;
      const count = this.#protectedByAgent.get(agentName) ?? 0;
      if (count >= MAX_PROTECTED_PER_AGENT) return;
      this.#protectedByAgent.set(agentName, count + 1);
      connection.agentName = agentName;
    }
    this.#unprotected.delete(connection);
  }

  #find(socket: Socket): Connection | undefined {
    const known = this.#bySocket.get(socket);
    if (known !== undefined) return known;
    const connection = this.#open.get(keyOf(socket));
    if (connection !== undefined) this.#bySocket.set(socket, connection);
    return connection;
  }

  #unprotect({ agentName }: Connection): void {
    if (agentName === null) return;
    const left = (this.#protectedByAgent.get(agentName) ?? 1) - 1;
    if (left > 0) this.#protectedByAgent.set(agentName, left);
    else this.#protectedByAgent.delete(agentName);
  }

  #makeRoom(address: string): boolean {
    // All clients of a Unix socket have the same address.
    const limit = address === 'local' ? MAX_CONNECTIONS : MAX_CONNECTIONS_PER_ADDRESS;
    const isAddressFull = (this.#byAddress.get(address) ?? 0) >= limit;
    if (!isAddressFull && this.#total < MAX_CONNECTIONS) return true;
    for (const connection of this.#unprotected) {
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
      this.#open.delete(key);
      this.#unprotected.delete(connection);
      this.#unprotect(connection);
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
    const connection: Connection = { address, agentName: null, close };
    this.#open.set(key, connection);
    this.#unprotected.add(connection);
    socket.once('close', release);
  }

  recordIdle(socket: Socket): void {
    const connection = this.#find(socket);
    if (connection === undefined || !this.#unprotected.delete(connection)) return;
    this.#unprotected.add(connection);
  }
}

/** The key is equal for a connection and the TLS socket on top of it. */
function keyOf(socket: Socket): unknown {
  return socket.remoteAddress === undefined ? socket : `${socket.remoteAddress} ${socket.remotePort}`;
}
