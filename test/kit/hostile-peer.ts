/** A server that answers every connection as a script says, and never as a well-behaved peer would without one. */
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Scope } from './directory.ts';
import { play, type Script } from './hostile-bytes.ts';

export interface HostilePeer {
  readonly port: number;
  /** Requests that were answered. */
  answered(): number;
}

/** A request with its body as far as it came in one piece; the script of its answer, or null for none yet. */
export type Answer = (request: string) => Script | null;

/**
 * Answers the first bytes of each connection; some answers come before the request. It closes a connection that the
 * other side leaves open.
 */
export async function startHostilePeer(
  scope: Scope,
  answer: Answer,
  tls: { readonly cert: string; readonly key: string } | null = null,
): Promise<HostilePeer> {
  let answered = 0;
  const sockets = new Set<Socket>();
  const accept = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (!text.includes('\r\n\r\n')) return;
      const script = answer(text);
      if (script === null) return;
      text = '';
      answered += 1;
      void play(socket, script);
    });
  };
  const server: Server = tls === null ? createServer(accept) : createTlsServer(tls, accept);
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scope.after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the peer has no port');
  return { port: address.port, answered: () => answered };
}
