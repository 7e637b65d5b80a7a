/**
 * Ends connections on which nothing moves. WHY not `server.timeout`: it makes a timer for every request, and drops it.
 * SOURCE: security, "Node's HTTP defaults".
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** A socket that neither sends nor takes anything: longer than the verification of millions of entries. */
const SILENCE_TIMEOUT_MS = 300_000;

interface Seen {
  moved: number;
  at: number;
}

export function closeIdleSockets(server: Server, silenceMs: number = SILENCE_TIMEOUT_MS): void {
  const seen = new Map<Socket, Seen>();
  // Below TLS, which counts what it was given and not what left.
  const opened = (socket: Socket): void => {
    seen.set(socket, { moved: 0, at: performance.now() });
    socket.once('close', () => seen.delete(socket));
  };
  const look = (): void => {
    const now = performance.now();
    for (const [socket, last] of seen) {
      const moved = bytesMoved(socket);
      if (moved !== last.moved) seen.set(socket, { moved, at: now });
      else if (now - last.at > silenceMs) socket.destroy();
    }
  };
  server.on('connection', opened);
  const timer = setInterval(look, silenceMs / 10).unref();
  server.once('close', () => clearInterval(timer));
}

/** What came in, and what the system took from us: an answer that is written at once may wait long for who reads it. */
function bytesMoved(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const waiting: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : 0;
  return socket.bytesRead + socket.bytesWritten - (typeof waiting === 'number' ? waiting : 0);
}
