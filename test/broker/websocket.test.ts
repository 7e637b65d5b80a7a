// Messages of a WebSocket from an upstream: redacted whole, and nothing but well-formed frames passes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type Duplex, PassThrough, Readable } from 'node:stream';
import { after, test } from 'node:test';
import { redactedFrames } from '../../src/broker/websocket.ts';
import { frame, TEXT } from '../kit/web-socket.ts';
import { bodyOf, failureOf, headOf, PLAIN_VALUE, specFor, startBroker, startUpstream } from './upstream.ts';

const PING = 9;
const CLOSE = 8;

const broker = startBroker({ after });
const upstream = await startUpstream({ after }, (_, response) => void response.end());
/** The upstream's part of the connection. */
let speak: (socket: Duplex) => void = (socket) => void socket.pipe(socket);
upstream.server.on('upgrade', (request, socket) => {
  socket.on('error', () => undefined);
  const key = `${request.headers['sec-websocket-key']}`;
  const head = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', `X-Echo: ${key}`];
  socket.write(`${[...head, `X-Auth: ${request.headers.authorization}`].join('\r\n')}\r\n\r\n`);
  speak(socket);
});

test('a WebSocket passes both ways, and the head of its handshake is redacted', async () => {
  const caller = new PassThrough();
  const headers = [['Sec-WebSocket-Key', 'abc']] as const;
  const use = broker.use(specFor(upstream, { isUpgrade: true, headers }), caller);
  assert.deepEqual(await headOf(use), {
    kind: 'response',
    status: 101,
    headers: [
      ['Upgrade', 'websocket'],
      ['Connection', 'Upgrade'],
      ['X-Echo', 'abc'],
      ['X-Auth', 'Bearer [secret]'],
    ],
  });
  for (const message of ['one', 'two']) {
    caller.write(frame(TEXT, message));
    assert.deepEqual((await once(use.body, 'data'))[0], frame(TEXT, message));
  }
  caller.end();
  await once(use.body.resume(), 'end');
  assert.equal((await use.result).ended, 'complete');
});

test('a value in a message, in fragments, and in control frames is redacted, and the connection continues', async () => {
  const fragments = [...PLAIN_VALUE].map((letter, at, all) =>
    frame(at === 0 ? TEXT : 0, letter, at === all.length - 1),
  );
  const [first = Buffer.alloc(0), ...others] = fragments;
  const sent = [
    frame(TEXT, `two ${PLAIN_VALUE} three`),
    Buffer.concat([first, frame(PING, PLAIN_VALUE), ...others]),
    frame(2, `${'x'.repeat(70_000)}${PLAIN_VALUE}`),
    frame(CLOSE, Buffer.concat([Buffer.from([3, 0xe8]), Buffer.from(PLAIN_VALUE)])),
  ];
  speak = (socket) => {
    // All messages except the long one are sent in single bytes.
    for (const bytes of sent) {
      if (bytes.length > 1000) socket.write(bytes);
      else for (const byte of bytes) socket.write(Buffer.from([byte]));
    }
    socket.end();
  };
  const use = broker.use(specFor(upstream, { isUpgrade: true }), new PassThrough());
  await headOf(use);
  const expected = [
    frame(TEXT, 'two [secret] three'),
    frame(PING, '[secret]'),
    frame(TEXT, '[secret]'),
    frame(2, `${'x'.repeat(70_000)}[secret]`),
    frame(CLOSE, Buffer.concat([Buffer.from([3, 0xe8]), Buffer.from('[secret]')])),
  ];
  assert.deepEqual(await bodyOf(use), Buffer.concat(expected));
  assert.equal((await use.result).ended, 'complete');
});

test('a frame that is malformed, masked, compressed, too long or out of order ends the connection', async () => {
  const plain = async (payload: Uint8Array): Promise<Uint8Array> => payload;
  const rejected: readonly Buffer[] = [
    Buffer.from([0xc1, 0]),
    Buffer.from([0x81, 0x80, 0, 0, 0, 0]),
    Buffer.from([0x83, 0]),
    Buffer.from([0x09, 0]),
    Buffer.from([0x89, 126, 0, 200]),
    Buffer.from([0x81, 127, 0, 0, 0, 0, 0, 16, 0, 1]),
    Buffer.from([0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255]),
    frame(0, 'a continuation of nothing'),
    Buffer.concat([frame(TEXT, 'a', false), frame(TEXT, 'b')]),
    Buffer.concat([frame(TEXT, Buffer.alloc(1024 * 1024), false), frame(0, 'b')]),
    frame(TEXT, 'incomplete').subarray(0, 5),
  ];
  for (const bytes of rejected) {
    const frames: Uint8Array[] = [];
    await assert.rejects(async () => {
      for await (const each of redactedFrames(Readable.from([bytes]), plain)) frames.push(each);
    }, bytes.subarray(0, 4).toString('hex'));
    assert.equal(frames.length, 0);
  }
});

test('frames that arrive together are sent together, also those before a malformed one', async () => {
  const ping = frame(PING, '');
  const plain = async (payload: Uint8Array): Promise<Uint8Array> => payload;
  const pieces: Uint8Array[] = [];
  const together = Buffer.concat(Array<Buffer>(1000).fill(ping));
  for await (const piece of redactedFrames(Readable.from([together, ping, together]), plain)) pieces.push(piece);
  assert.deepEqual(Buffer.concat(pieces), Buffer.concat([together, ping, together]));
  assert.ok(pieces.length >= 2001 / 64 && pieces.length < 50, `${pieces.length} pieces`);

  const before: Uint8Array[] = [];
  await assert.rejects(async () => {
    const source = Readable.from([Buffer.concat([ping, Buffer.from([0xc1, 0])])]);
    for await (const piece of redactedFrames(source, plain)) before.push(piece);
  });
  assert.deepEqual(Buffer.concat(before), ping);
});

test('a handshake that the upstream rejects is a response', async () => {
  const plain = await startUpstream({ after }, (_, response) => response.writeHead(403).end('no'));
  const use = broker.use(specFor(plain, { isUpgrade: true }), new PassThrough());
  assert.equal((await headOf(use)).status, 403);
  assert.equal((await bodyOf(use)).toString(), 'no');
});

test('a switch to another protocol than WebSocket is refused', async (t) => {
  const other = await startUpstream(t, (_, response) => void response.end());
  other.server.on('upgrade', (_request, socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n');
  });
  const use = broker.use(specFor(other, { isUpgrade: true }), new PassThrough());
  assert.equal(await failureOf(use), 'protocol');
});
