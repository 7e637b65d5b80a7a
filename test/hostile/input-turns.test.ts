// What one connection sends is parsed in small pieces, in turns with the others. SOURCE: SECURITY.md, P8.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, type TestContext, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { handleUpgrades } from '../../src/http/connections.ts';
import { InputTurns } from '../../src/http/input-turns.ts';
import { makeCertificate } from '../kit/certificate.ts';

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const BLOCK_BYTES = 64 * 1024;
/** As many requests as a piece contains, and the one that it divides. */
const MOST_IN_PIECE = Math.ceil(1024 / REQUEST.length) + 1;

const { certFile, keyFile } = makeCertificate({ after });
const [cert, key] = [readFileSync(certFile), readFileSync(keyFile)];

/** A server with the turns, and a connection to it. */
async function openConnection(t: TestContext, listener: RequestListener, isTls = false): Promise<Socket> {
  const server = isTls ? createTlsServer({ cert, key }, listener) : createServer(listener);
  new InputTurns(server, isTls);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = isTls ? connectTls({ port, host: 'localhost', ca: cert }) : connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  t.after(() => {
    socket.destroy();
    server.close();
    server.closeAllConnections();
  });
  await once(socket, isTls ? 'secureConnect' : 'connect');
  return socket;
}

/** WHY not `once`: it rejects when the connection is reset. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.resume().once('close', () => resolve()));
}

for (const isTls of [false, true]) {
  const means = isTls ? 'with TLS' : 'without TLS';
  test(`of a block of requests only a piece is parsed after the connection was closed, ${means}`, async (t) => {
    let requests = 0;
    const close = (request: IncomingMessage): void => {
      requests += 1;
      request.socket.destroy();
    };
    const socket = await openConnection(t, close, isTls);
    socket.write(REQUEST.repeat(Math.floor(BLOCK_BYTES / REQUEST.length)));
    await closed(socket);
    assert.ok(requests >= 1 && requests <= MOST_IN_PIECE, `${requests} requests`);
  });
}

test('requests of a block are served in their order, and so is a body that has many pieces', async (t) => {
  const served: { url: string; length: number }[] = [];
  const socket = await openConnection(t, (request, response) => {
    const own = { url: request.url ?? '', length: 0 };
    served.push(own);
    request.on('data', ({ length }: Buffer) => {
      own.length += length;
    });
    request.on('end', () => {
      response.end();
      if (own.url === '/last') socket.end();
    });
  });
  const body = 'x'.repeat(1_000_000);
  const post = (path: string) => `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  socket.write(REQUEST.repeat(3) + post('/body') + REQUEST + post('/last'));
  await closed(socket);
  assert.deepEqual(
    served.map(({ url, length }) => `${url} ${length}`),
    ['/ 0', '/ 0', '/ 0', '/body 1000000', '/ 0', '/last 1000000'],
  );
});

test('a body that nobody reads yet is parsed up to a piece, and the rest once it is read', async (t) => {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  const socket = await openConnection(t, (request) => resolve(request));
  const chunks = Math.floor(BLOCK_BYTES / 6);
  socket.write(
    `POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(chunks)}0\r\n\r\n`,
  );
  const request = await promise;
  // Many turns in which nothing more may be parsed.
  for (let turn = 0; turn < 100; turn++) await new Promise((next) => setImmediate(next));
  assert.ok(request.readableLength <= 2 * (1024 / 6), `${request.readableLength} chunks`);
  let length = 0;
  for await (const chunk of request) length += chunk.length;
  assert.equal(length, chunks);
});

test('a connection that sends empty lines without end is closed, before its first request and after it', async (t) => {
  for (const first of ['', REQUEST]) {
    const socket = await openConnection(t, (_request, response) => response.end());
    if (first !== '') {
      socket.write(first);
      await once(socket, 'data');
    }
    const send = (): void => {
      while (!socket.destroyed && socket.write('\r\n'.repeat(1000)));
    };
    socket.on('drain', send);
    send();
    await closed(socket);
  }
});

test('requests that are sent ahead are served while a large response is not read yet', async (t) => {
  const body = 'x'.repeat(6000);
  const post = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  let served = 0;
  const socket = await openConnection(t, (request, response) => {
    request.resume().on('end', () => {
      served += 1;
      response.end(served === 1 ? Buffer.alloc(8 * 1024 * 1024) : 'ok');
    });
  });
  socket.pause();
  socket.write(REQUEST + post.repeat(7) + REQUEST.replace('Host: a', 'Host: a\r\nConnection: close'));
  // Many turns in which the server can only wait for its client.
  for (let turn = 0; turn < 100; turn++) await new Promise((next) => setImmediate(next));
  await closed(socket);
  assert.equal(served, 9);
});

test('a client that leaves is noticed although its body has no reader', async (t) => {
  const { promise, resolve } = Promise.withResolvers<IncomingMessage>();
  const socket = await openConnection(t, (request) => resolve(request.on('error', () => undefined)));
  socket.write(`POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${'x'.repeat(3000)}`);
  const request = await promise;
  socket.destroy();
  await new Promise((left) => request.once('close', left));
  assert.equal(request.complete, false);
});

test('an upgraded connection may send any number of bytes', async (t) => {
  const bytes = 200_000;
  const { promise, resolve } = Promise.withResolvers<number>();
  const server = createServer();
  new InputTurns(server);
  handleUpgrades(server);
  server.on('request', ({ socket }) => {
    let received = 0;
    socket.on('data', ({ length }: Buffer) => {
      received += length;
      if (received === bytes) resolve(received);
    });
    socket.on('close', () => resolve(received));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => {
    socket.destroy();
    server.close();
  });
  socket.write('GET /use/a/-/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.write(Buffer.alloc(bytes));
  assert.equal(await promise, bytes);
});
