/**
 * Closes connections whose request body is not read to its end, because the response is sent early.
 * SOURCE: RFC 9112, section 9.6.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';

/**
 * Time for the client to read the response. Closing a socket with unread bytes resets the connection, which can discard
 * the response.
 */
const LINGER_MS = 250;

export function hasUnreadBody({ complete, headers }: IncomingMessage): boolean {
  if (complete) return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** Must be called before the response's headers are written. */
export function closeUnread(request: IncomingMessage, reply: FastifyReply): void {
  const { socket } = request;
  reply.header('connection', 'close');
  request.pause();
  // WHY: Node reads and drops a body that was not consumed; one read of no bytes marks it as consumed.
  request.read(0);
  lingerOnClose(socket);
}

export function lingerOnClose(socket: Socket): void {
  socket.destroySoon = () => {
    socket.end();
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}
