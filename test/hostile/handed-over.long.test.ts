// A stranger's header or reset never ends the server. Each kind of listener runs as a process, with the flags of the
// product.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { endConnection } from '../../src/http/connections.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { reset } from '../kit/hostile-bytes.ts';
import { until } from '../kit/log-receivers.ts';
import { childrenOf } from '../kit/processes.ts';
import { scaled } from '../kit/scale.ts';
import { type Entrance, fuzzClients, startEntrances } from './hostile-clients.ts';

const entrances = await startEntrances({ after });

/** Sends the bytes, and resets the connection in the next turn of the event loop or when an answer has come. */
async function sendAndReset({ connect, name }: Entrance, text: string, waits: boolean): Promise<string> {
  const socket = connect();
  socket.on('error', () => undefined);
  let received = '';
  await once(socket, name === 'TLS' ? 'secureConnect' : 'connect');
  const answered = new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1');
      resolve();
    });
    socket.on('close', () => resolve());
  });
  await new Promise((resolve) => socket.write(text, resolve));
  if (waits) await answered;
  reset(socket);
  return received;
}

/** The target of a link; empty if the descriptor was closed in the meantime. */
function linkOf(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}

async function assertServes({ process, health }: Entrance): Promise<void> {
  assert.equal(await health(), 200);
  assert.equal(process.child.exitCode, null, process.output());
}

const NAMES = ['__proto__', '__PROTO__', 'constructor', 'hasOwnProperty', 'toString'];

for (const entrance of entrances) {
  test(`headers named as members of objects change nothing (${entrance.name})`, async () => {
    for (const name of NAMES) {
      const lines = ['GET /api/v1/health HTTP/1.1', 'Host: localhost', `${name}: x`, `${name}: y`];
      const text = await sendAndReset(entrance, `${lines.join('\r\n')}\r\n\r\n`, true);
      assert.match(text, /^HTTP\/1\.1 200 /, name);
    }
    const trailer = ['POST /auth/challenge HTTP/1.1', 'Host: localhost', 'Transfer-Encoding: chunked'];
    await sendAndReset(entrance, `${trailer.join('\r\n')}\r\n\r\n0\r\n__proto__: x\r\n\r\n`, true);
    await assertServes(entrance);
  });

  test(`a socket that Node hands over may be reset at any moment (${entrance.name})`, async () => {
    const lines = ['Host: localhost', 'Connection: Upgrade', 'Upgrade: websocket'];
    const requests = [
      ['CONNECT a:1 HTTP/1.1', 'Host: a', '', ''],
      ['CONNECT a:1 HTTP/1.1', 'Host: a', 'Content-Length: 9', '', 'abc'],
      ['CONNECT a:1 HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked', '', '3\r\nabc'],
      ['GET /use/a/-/v1 HTTP/1.1', ...lines, '', ''],
      ['GET /use/a/-/v1 HTTP/1.1', ...lines, 'Content-Length: 9', '', 'abc'],
      ['POST /auth/challenge HTTP/1.1', 'Host: localhost', 'Expect: 100-continue', 'Content-Length: 9', '', ''],
      ['GET /api/v1/health HTTP/1.1', 'Host: localhost', 'Expect: other', '', ''],
      ['not HTTP', '', ''],
    ].map((parts) => parts.join('\r\n'));
    for (const text of requests) {
      await Promise.all(Array.from({ length: 20 }, (_, at) => sendAndReset(entrance, text, at % 4 === 0)));
      await assertServes(entrance);
    }
  });
}

test('CONNECT is answered and closed, but never in place of the response to a request before it', async () => {
  for (const entrance of entrances) {
    const lone = await sendAndReset(entrance, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', true);
    assert.match(lone, /^HTTP\/1\.1 405 [\s\S]*\r\nConnection: close\r\n/, entrance.name);
    const login = '{"challenge_id":"x","agent_name":"a","signature":"x"}';
    const first = ['POST /auth/verify HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'];
    const text = `${[...first, `Content-Length: ${login.length}`].join('\r\n')}\r\n\r\n${login}`;
    const both = await sendAndReset(entrance, `${text}CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n`, true);
    assert.doesNotMatch(both, /^HTTP\/1\.1 405 /, entrance.name);
    await assertServes(entrance);
  }
});

const seed = newSeed();
/** TLS takes most of the time. */
const SHARES: Readonly<Record<string, number>> = { HTTP: 0.5, 'Unix socket': 0.4, TLS: 0.1 };
const wanted = scaled(3000, 50_000);

test(`${wanted} random requests leave the same processes and brokers serving (SEED=${seed})`, async () => {
  await Promise.all(
    entrances.map(async (entrance, index) => {
      const brokers = childrenOf(entrance.process.pid);
      await fuzzClients(
        entrance,
        new Dice(seed + index),
        wanted * (SHARES[entrance.name] ?? assert.fail(entrance.name)),
      );
      await assertServes(entrance);
      assert.deepEqual(childrenOf(entrance.process.pid), brokers, entrance.process.output());
    }),
  );
});

/** Ends the TCP connection below TLS without a word, and resets it at one of several moments. */
async function endBelowTls(carrier: Socket, text: string, waitMs: number): Promise<void> {
  const below = new Duplex({
    read: () => undefined,
    write: (chunk, _encoding, done) => void carrier.write(chunk, () => done()),
  });
  carrier.on('error', () => undefined).on('data', (chunk) => below.push(chunk));
  const client = connectTls({ socket: below, rejectUnauthorized: false });
  client.on('error', () => undefined);
  await once(client, 'secureConnect');
  await new Promise((resolve) => client.write(text, resolve));
  await new Promise<void>((resolve) => carrier.end(resolve));
  if (waitMs > 0) await sleep(waitMs);
  carrier.resetAndDestroy();
  client.destroy();
}

test('TLS clients that end and reset the connection below leave nothing open', async () => {
  const { process, health } = entrances.find(({ name }) => name === 'TLS') ?? assert.fail();
  const { hostname, port } = new URL(process.address);
  const sockets = (): number => {
    const directory = `/proc/${process.child.pid}/fd`;
    return readdirSync(directory).filter((name) => linkOf(join(directory, name)).startsWith('socket:')).length;
  };
  const before = sockets();
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n';
  for (const start of ['CONNECT a:1', 'GET /use/a/-/v1'])
    for (let round = 0; round < 8; round++)
      await Promise.all(
        Array.from({ length: 20 }, (_, at) =>
          endBelowTls(connect(Number(port), hostname), `${start} HTTP/1.1\r\nHost: a\r\n${upgrade}\r\n`, at % 4),
        ),
      );
  await until(() => sockets() <= before);
  assert.equal(await health(), 200);
});

test('a connection that is ended is closed after five seconds, whatever its client sends, and does not read', async (t) => {
  const server = createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').pause();
  t.after(() => client.destroy());
  client.on('error', () => undefined);
  const [socket] = (await once(server, 'connection')) as [Socket];
  t.mock.timers.enable({ apis: ['setTimeout'] });
  socket.on('error', () => undefined).write(Buffer.alloc(64 * 1024 * 1024));
  endConnection(socket);
  for (let second = 0; second < 4; second++) {
    client.write('x');
    await once(socket.resume(), 'data');
    t.mock.timers.tick(1000);
  }
  assert.equal(socket.destroyed, false);
  t.mock.timers.tick(1000);
  assert.equal(socket.destroyed, true);
});
