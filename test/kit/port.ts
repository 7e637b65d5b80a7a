/** Ports for servers that are stopped and started again on the same one. */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createServer } from 'node:net';

// WHY not port 0: the system assigns ports of the same range to clients. While the server is stopped, one of its
// clients could get the port, or even connect to itself.
const [FIRST, END] = [20_000, 32_000];

/**
 * A port that is free on 127.0.0.1 now, and that `findPort` returns in no other process while this one lives. WHY a
 * reservation in UDP: it leaves the port in TCP free.
 */
export async function findPort(): Promise<number> {
  for (;;) {
    const port = randomInt(FIRST, END);
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
}

function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref();
  return new Promise((resolve) => {
    socket.once('error', () => {
      socket.close();
      resolve(false);
    });
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true));
  });
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
