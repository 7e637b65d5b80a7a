// Bytes of an upstream, and an exception about one exchange, end that exchange alone: the same broker serves others.

import assert from 'node:assert/strict';
import { duplexPair, Readable } from 'node:stream';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { startUse } from '../../src/broker/broker-client.ts';
import { Channel } from '../../src/broker/channel.ts';
import type { ChannelStream } from '../../src/broker/channel-stream.ts';
import { decodeBody } from '../../src/broker/upstream-response.ts';
import { startHostilePeer } from '../kit/hostile-peer.ts';
import { bodyOf, failureOf, headOf, specFor, startBroker } from './upstream.ts';

const broker = startBroker({ after });
const { pid } = broker;

test('headers and trailers named as members of objects reach the caller as they are', async (t) => {
  const head = ['HTTP/1.1 200 OK', '__proto__: a', '__PROTO__: b', 'constructor: c', 'Transfer-Encoding: chunked'];
  const information = 'HTTP/1.1 103 Early Hints\r\n__proto__: x\r\nconstructor: y\r\n\r\n';
  const answer = `${information}${head.join('\r\n')}\r\n\r\n2\r\n{}\r\n0\r\n__proto__: d\r\n\r\n`;
  const { port } = await startHostilePeer(t, () => ({ pieces: [Buffer.from(answer)], end: 'stay' }));
  const use = broker.use(specFor({ port, caPem: null }, { headers: [['__proto__', 'of the caller']] }), null);
  const { headers } = await headOf(use);
  const own = headers.filter(([name]) => name !== 'Transfer-Encoding');
  assert.deepEqual(own, [
    ['__proto__', 'a'],
    ['__PROTO__', 'b'],
    ['constructor', 'c'],
  ]);
  assert.equal(String(await bodyOf(use)), '{}');
  assert.deepEqual(use.trailers, [['__proto__', 'd']]);
  assert.equal(broker.pid, pid);
});

test('links that would become longer than any message are dropped', async (t) => {
  const head = `HTTP/1.1 200 OK\r\nLink: ${'<>,'.repeat(19_000)}\r\n${'Location: a\r\n'.repeat(300)}`;
  const { port } = await startHostilePeer(t, () => ({
    pieces: [Buffer.from(`${head}Content-Length: 2\r\n\r\n{}`)],
    end: 'stay',
  }));
  const spec = specFor({ port, caPem: null }, { path: `/${'a/'.repeat(4000)}`, linkPrefix: '/use/a/-' });
  const { headers } = await headOf(broker.use(spec, null));
  const sizes = headers.map(([name, value]) => name.length + value.length);
  assert.ok(sizes.reduce((sum, size) => sum + size, 0) < 200_000);
  assert.ok(!headers.some(([name]) => name === 'Link'));
  assert.equal(broker.pid, pid);
});

test('a status below 100 is the fault of the upstream', async (t) => {
  for (const status of ['000', '099']) {
    const answer = `HTTP/1.1 ${status} x\r\nContent-Length: 0\r\n\r\n`;
    const { port } = await startHostilePeer(t, () => ({ pieces: [Buffer.from(answer)], end: 'stay' }));
    assert.equal(await failureOf(broker.use(specFor({ port, caPem: null }), null)), 'protocol');
  }
});

test('a head that switches the protocol is the fault of the upstream, and so is one without Upgrade', async (t) => {
  const answer = 'HTTP/1.1 101 Switching Protocols\r\n\r\n\x81\x02ok';
  const { port } = await startHostilePeer(t, () => ({ pieces: [Buffer.from(answer, 'latin1')], end: 'stay' }));
  for (const isUpgrade of [false, true]) {
    assert.equal(await failureOf(broker.use(specFor({ port, caPem: null }, { isUpgrade }), null)), 'protocol');
  }
});

test('no header or trailer escapes the checks because others precede it', async (t) => {
  const compressed = gzipSync('a body');
  const few = 'a: b\r\n'.repeat(998);
  const many = 'a: b\r\n'.repeat(1000);
  const start = async (head: string, body: Uint8Array) => {
    const pieces = [Buffer.from(`HTTP/1.1 200 OK\r\n${head}\r\n`), Buffer.from(body)];
    const { port } = await startHostilePeer(t, () => ({ pieces, end: 'stay' }));
    return broker.use(specFor({ port, caPem: null }), null);
  };
  const coding = `Content-Encoding: gzip\r\nContent-Length: ${compressed.length}\r\n`;
  const decoded = await start(few + coding, compressed);
  assert.equal((await headOf(decoded)).status, 200);
  assert.equal(String(await bodyOf(decoded)), 'a body');
  assert.equal(await failureOf(await start(many + coding, compressed)), 'protocol');
  const cut = await start('Transfer-Encoding: chunked\r\n', Buffer.from(`2\r\nok\r\n0\r\n${many}x: y\r\n\r\n`));
  await headOf(cut);
  cut.body.resume().on('error', () => undefined);
  assert.equal((await cut.result).ended, 'upstream');
});

test('a response to HEAD names no trailers, which the server could not send', async (t) => {
  const answer = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-end\r\n\r\n';
  const { port } = await startHostilePeer(t, () => ({ pieces: [Buffer.from(answer)], end: 'stay' }));
  const { headers } = await headOf(broker.use(specFor({ port, caPem: null }, { method: 'HEAD' }), null));
  assert.deepEqual(headers, []);
});

test('interim responses without end are the fault of the upstream', async (t) => {
  const interim = 'HTTP/1.1 102 Processing\r\n\r\n';
  const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
  const answers = [interim.repeat(100) + whole, interim.repeat(101) + whole];
  for (const [index, answer] of answers.entries()) {
    const { port } = await startHostilePeer(t, () => ({ pieces: [Buffer.from(answer)], end: 'stay' }));
    const head = await broker.use(specFor({ port, caPem: null }), null).head;
    assert.equal(head.kind, index === 0 ? 'response' : 'error');
  }
});

test('empty lines without end in place of a response are the fault of the upstream', async (t) => {
  const pieces = [Buffer.from('\r\n'.repeat(256 * 1024))];
  const { port } = await startHostilePeer(t, () => ({ pieces, end: 'stay' }));
  assert.equal(await failureOf(broker.use(specFor({ port, caPem: null }), null)), 'protocol');
});

test('an exception about one stream of the channel is recorded as failed, and the others go on', async () => {
  const [ours, theirs] = duplexPair();
  const server = new Channel(theirs, {
    opened(stream: ChannelStream, message) {
      if (JSON.stringify(message).includes('/broken')) throw new Error('a bug');
      stream.resume();
      stream.sendHead({ kind: 'response', status: 200, headers: [] });
      const result = { status: 200, bytesIn: 0, bytesOut: 0, redactions: 0, ended: 'complete' };
      stream.endWith({ result, trailers: [] });
    },
    closed: () => undefined,
  });
  const channel = new Channel(ours, { closed: () => undefined });
  after(() => channel.close());
  const ask = (path: string) => startUse(channel, specFor({ port: 1, caPem: null }, { path }), null, undefined);
  const [broken, whole] = [ask('/broken'), ask('/')];
  assert.deepEqual(await broken.head, { kind: 'error', failure: 'broker' });
  assert.equal((await broken.result).ended, 'failed');
  assert.equal((await headOf(whole)).status, 200);
  whole.body.resume();
  assert.equal((await whole.result).ended, 'complete');
  assert.equal(server.isOpen, true);
});

test('an error of a decoder or a body that nobody reads yet ends nothing', async () => {
  const encoders = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
  for (const [coding, encode] of Object.entries(encoders)) {
    const compressed = encode(Buffer.from('a body '.repeat(100)));
    for (const bytes of [compressed.subarray(0, -3), Buffer.from('no such coding')]) {
      const decoded = decodeBody(Readable.from([bytes]), coding);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
      await assert.rejects(decoded.toArray(), coding);
    }
  }
});
