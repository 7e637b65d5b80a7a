/**
 * Binds the server to its address, and its port on the other loopback address too. WHY: a browser resolves `localhost`
 * to 127.0.0.1 or to ::1, so another user of this machine, listening on the free one, would control the origin of the
 * console. SOURCE: docs/decisions.md, "Agents and sessions".
 */
import { once } from 'node:events';
import { lstatSync, rmSync } from 'node:fs';
import { connect, createServer, isIP, type Server } from 'node:net';
import { ignoreSocketErrors } from '../http/connections.ts';
import type { HttpServer } from '../http/http-server.ts';
import { StartupError } from '../platform/errors.ts';
import type { Listen } from './flag-values.ts';

/** Resolves to the address in the form that clients accept. @throws StartupError */
export async function listen(server: HttpServer, where: Listen, isTls: boolean): Promise<string> {
  const scheme = isTls ? 'https' : 'http';
  try {
    if (where.kind === 'unix') {
      await removeStaleSocket(where.path);
      await server.listen({ path: where.path });
      return `unix:${where.path}`;
    }
    // WHY not `localhost`: Fastify would open a second server for its other address, without our limits.
    const host = where.host === 'localhost' ? '127.0.0.1' : where.host;
    const port = isTls ? where.port : await holdOtherLoopback(server, host, where.port);
    await server.listen({ host, port });
  } catch (error) {
    await server.close();
    if (error instanceof StartupError) throw error;
    const code = error instanceof Error && 'code' in error ? error.code : null;
    const shown = where.kind === 'unix' ? where.path : `${where.host}:${where.port}`;
    if (code === 'EADDRINUSE') throw new StartupError(`${shown} is already in use. Give another --listen.`);
    throw new StartupError(`Cannot listen on ${shown}: ${error instanceof Error ? error.message : 'unknown error'}.`);
  }
  const bound = server.server.address();
  const [port, host] =
    typeof bound === 'object' && bound !== null ? [bound.port, bound.address] : [where.port, where.host];
  // WHY the bound address without TLS: a name may resolve to another one, where another program listens.
  const named = isTls || isIP(where.host) !== 0 ? where.host : host;
  return `${scheme}://${named.includes(':') ? `[${named}]` : named}:${port}`;
}

/** Deletes a socket file on which no process listens, as a crash leaves it. */
async function removeStaleSocket(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return;
  const socket = connect(path);
  const isAlive = await once(socket, 'connect').then(
    () => true,
    () => false,
  );
  socket.destroy();
  if (!isAlive) rmSync(path);
}

const MAX_TRIES = 20;
const ABSENT = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL', 'EPROTONOSUPPORT']);

const OTHER: Readonly<Record<string, string>> = { '127.0.0.1': '::1', '::1': '127.0.0.1' };

/**
 * Listens on the other loopback address, and passes its connections to `server`, which limits and handles them like its
 * own. Resolves to the port on which `server` must listen. @throws StartupError if another program uses the port there
 */
async function holdOtherLoopback(server: HttpServer, host: string, port: number): Promise<number> {
  const other = OTHER[host];
  if (other === undefined) return port;
  // Node's server sets the same options on its own connections.
  const held = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    if (server.server.listening) server.server.emit('connection', socket);
    else socket.destroy();
  });
  ignoreSocketErrors(held, (error) => server.server.listening && server.server.emit('error', error));
  let closed: Promise<unknown> | undefined;
  server.addHook('preClose', async () => {
    closed = once(held, 'close');
    held.close();
    server.server.closeIdleConnections();
  });
  server.addHook('onClose', async () => void (await closed));
  // WHY first: another program could take the free port while the routes are compiled.
  await server.ready();
  return (await bindBoth(held, other, host, port)) ?? port;
}

/** Null if this machine has no other loopback address. For port 0 it finds a port that is free on both. */
async function bindBoth(held: Server, other: string, host: string, port: number): Promise<number | null> {
  for (let tries = 1; ; tries += 1) {
    const failure = await bind(held, other, port);
    if (failure !== null && ABSENT.has(failure)) return null;
    // The server's own listener reports a port that is taken on both.
    if (failure !== null && (await isTaken(host, port))) return null;
    if (failure !== null) throw unavailable(other, port, failure);
    const address = held.address();
    if (port !== 0 || typeof address !== 'object' || address === null) return port;
    if (tries >= MAX_TRIES || !(await isTaken(host, address.port))) return address.port;
    await close(held);
  }
}

async function isTaken(host: string, port: number): Promise<boolean> {
  const probe = createServer();
  const failure = await bind(probe, host, port);
  if (failure === null) await close(probe);
  return failure === 'EADDRINUSE';
}

/** Resolves to the system's code of a failure; null for none. */
function bind(server: Server, host: string, port: number): Promise<string | null> {
  return new Promise((resolve) => {
    const fail = (error: Error): void => resolve('code' in error ? String(error.code) : error.message);
    server.once('error', fail);
    server.listen({ host, port }, () => {
      server.off('error', fail);
      resolve(null);
    });
  });
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  await closed;
}

function unavailable(host: string, port: number, code: string): StartupError {
  const shown = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  if (code !== 'EADDRINUSE') return new StartupError(`Cannot listen on ${shown}: ${code}.`);
  return new StartupError(
    `${shown} is already in use by another program, to which browsers could send http://localhost:${port}. Give another --listen.`,
  );
}
