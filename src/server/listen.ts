/** Binds the server to its address. */

import { once } from 'node:events';
import { lstatSync, rmSync } from 'node:fs';
import { connect, isIP } from 'node:net';
import type { HttpServer } from '../http/http-server.ts';
import { StartupError } from '../platform/errors.ts';
import type { Listen } from './hosts.ts';
import { holdOtherLoopback } from './other-loopback.ts';

/** Resolves to the address in the form that clients take. @throws StartupError */
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

/** Deletes a socket file that no process listens on, which a crash leaves. */
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
