// The channel between the server and the broker's process: whatever bytes arrive, a use ends.

import assert from 'node:assert/strict';
import { duplexPair, PassThrough, Readable, Transform } from 'node:stream';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrokerUse } from '../../src/broker/broker-client.ts';
import { startUse } from '../../src/broker/broker-client.ts';
import { serveBroker } from '../../src/broker/broker-server.ts';
import { Channel } from '../../src/broker/channel.ts';
import { FRAME } from '../../src/broker/protocol.ts';
import { bodyOf, headOf, specFor, startUpstream } from './upstream.ts';

const upstream = await startUpstream({ after }, (request, response) => request.pipe(response));
const spec = specFor(upstream, { method: 'POST', bodyLength: null });

function frame(id: number, kind: number, payload: string | Buffer = '', length = Buffer.byteLength(payload)): Buffer {
  const header = Buffer.alloc(9);
  header.writeUInt32BE(length);
  header.writeUInt32BE(id, 4);
  header.writeUInt8(kind, 8);
  return Buffer.concat([header, Buffer.from(payload)]);
}

/** A use whose broker sends these frames, in one piece. */
function answeredBy(...frames: Buffer[]): BrokerUse {
  const [ours, theirs] = duplexPair();
  const channel = new Channel(ours, { closed: () => undefined });
  theirs.resume();
  const use = startUse(channel, spec, null, undefined);
  theirs.write(Buffer.concat(frames));
  use.body.resume();
  return use;
}

const HEAD = JSON.stringify({ kind: 'response', status: 200, headers: [['a', 'b']] });
const counts = { status: 200, bytesIn: 0, bytesOut: 4, redactions: 0, ended: 'complete' };
const END = JSON.stringify({ result: counts, trailers: [] });

test('a use ends with what the broker says of it', async () => {
  const use = answeredBy(frame(1, FRAME.head, HEAD), frame(1, FRAME.data, 'body'), frame(1, FRAME.end, END));
  assert.deepEqual(await use.head, { kind: 'response', status: 200, headers: [['a', 'b']] });
  assert.deepEqual(await use.result, counts);
});

test('messages of another form fail the use, and nothing is thrown', async () => {
  const heads = [
    '',
    '{',
    'null',
    '{}',
    '{"kind":"response","status":"200","headers":[]}',
    '{"kind":"response","status":20,"headers":[]}',
    '{"kind":"response","status":200,"headers":[["a"]]}',
    '{"kind":"response","status":200,"headers":{"a":"b"}}',
    '{"kind":"error","failure":"of the upstream"}',
  ];
  for (const head of heads) {
    const use = answeredBy(frame(1, FRAME.head, head), frame(1, FRAME.head, HEAD), frame(1, FRAME.end, END));
    assert.deepEqual(await use.head, { kind: 'error', failure: 'broker' }, head);
    assert.equal((await use.result).ended, 'failed', head);
  }
  const ends = ['', '{', '[]', '{"result":{},"trailers":[]}', END.replace('[]', '{}'), END.replace('200', '"200"')];
  const more = [END.replace('"bytesIn":0', '"bytesIn":-1'), END.replace('"bytesOut":4', '"bytesOut":1e99')];
  for (const end of [...ends, ...more, END.replace('complete', 'well')]) {
    const use = answeredBy(frame(1, FRAME.head, HEAD), frame(1, FRAME.data, 'body'), frame(1, FRAME.end, end));
    assert.equal((await use.head).kind, 'response');
    const { bytesIn, bytesOut, ended } = await use.result;
    assert.deepEqual([bytesIn, bytesOut, ended], [0, 4, 'failed'], end);
  }
});

test('frames that are too long, cut off, or of other streams and kinds', async () => {
  const tooLong = answeredBy(frame(1, FRAME.data, 'x', 8 * 1024 * 1024 + 1));
  assert.equal((await tooLong.result).ended, 'failed');
  for (const invalid of [frame(1, FRAME.credit, 'x'), frame(1, FRAME.open, HEAD), frame(9, FRAME.open, HEAD)]) {
    assert.equal((await answeredBy(invalid).result).ended, 'failed');
  }
  const others = [frame(7, FRAME.head, HEAD), frame(1, 99, 'x'), frame(7, FRAME.reset)];
  const use = answeredBy(...others, frame(1, FRAME.head, HEAD), frame(1, FRAME.end, END.replace('4', '0')));
  assert.equal((await use.result).ended, 'complete');
  const [ours, theirs] = duplexPair();
  const cut = startUse(new Channel(ours, { closed: () => undefined }), spec, null, undefined);
  theirs.resume().write(frame(1, FRAME.head, HEAD).subarray(0, 20));
  theirs.end();
  assert.deepEqual([await cut.head, (await cut.result).ended], [{ kind: 'error', failure: 'broker' }, 'failed']);
});

/** Passes single bytes, or all that it has. */
const inPieces = (size: number) =>
  new Transform({
    transform(chunk: Buffer, _encoding, done) {
      for (let at = 0; at < chunk.length; at += size) this.push(chunk.subarray(at, at + size));
      done();
    },
  });

test('frames may be divided anywhere', async () => {
  for (const size of [1, 8, 10, 4096]) {
    const [ours, ourEnd] = duplexPair();
    const [theirs, theirEnd] = duplexPair();
    ourEnd.pipe(inPieces(size)).pipe(theirEnd);
    theirEnd.pipe(inPieces(size)).pipe(ourEnd);
    const server = serveBroker(theirs, () => undefined);
    const channel = new Channel(ours, { closed: () => undefined });
    const sent = Buffer.from('0123456789abcdef'.repeat(size < 100 ? 300 : 40_000));
    const use = startUse(channel, spec, Readable.from([sent.subarray(0, 100), sent.subarray(100)]), undefined);
    await headOf(use);
    assert.deepEqual(await bodyOf(use), sent);
    assert.equal((await use.result).ended, 'complete');
    channel.close();
    server.close();
  }
});

test('redactions of a use that is cut are those of the bytes that were sent', async () => {
  const redactions = Buffer.from([0, 0, 0, 2]);
  const frames = [frame(1, FRAME.head, HEAD), frame(1, FRAME.redactions, redactions), frame(1, FRAME.data, 'body')];
  const use = answeredBy(...frames);
  await use.head;
  use.body.destroy();
  const { redactions: counted, ended } = await use.result;
  assert.deepEqual([counted, ended], [2, 'client']);
});

test('no stream is left after a use that fails before its body was read', async () => {
  const [ours, theirs] = duplexPair();
  const server = serveBroker(theirs, () => undefined);
  const channel = new Channel(ours, { closed: () => undefined });
  const bodies = () => Readable.from([Buffer.alloc(50_000, 'x'), Buffer.alloc(50_000, 'x')]);
  for (const fields of [
    { port: 1 },
    { allowNetworks: [] },
    { host: 'not a host' },
    { path: 'no path' },
    { value: '\u0000\u0000\u0000\u0000' },
    { caPem: null, scheme: 'https' as const },
  ]) {
    const use = startUse(channel, { ...spec, ...fields }, bodies(), undefined);
    assert.equal((await use.head).kind, 'error');
    await use.result;
  }
  while (server.openStreams > 0 || channel.openStreams > 0) await new Promise((resolve) => setImmediate(resolve));
  channel.close();
});

test('single bytes that the other side does not read are bounded in number', async () => {
  for (const isSocketRead of [true, false]) {
    const [ours, theirs] = duplexPair();
    const channel = new Channel(ours, { closed: () => undefined });
    if (isSocketRead) theirs.resume();
    let written = 0;
    const singleBytes = function* () {
      for (; written < 1_000_000; written++) yield Buffer.from('x');
    };
    const flood = Readable.from(singleBytes(), { objectMode: false, highWaterMark: 1 });
    const use = startUse(channel, spec, flood, undefined);
    for (let last = -1; last !== written; await sleep(100)) last = written;
    assert.equal(written > 100 && written < 2000, true, `${written} of them are on the way`);
    use.body.destroy();
    assert.equal((await use.result).ended, 'client');
    channel.close();
  }
});

test('a use that is cut at any moment leaves no stream behind', async () => {
  const [ours, theirs] = duplexPair();
  const server = serveBroker(theirs, () => undefined);
  const channel = new Channel(ours, { closed: () => undefined });
  for (let moment = 0; moment < 30; moment++) {
    const body = new PassThrough();
    const use = startUse(channel, spec, body, undefined);
    body.write('x'.repeat(1000));
    for (let turn = 0; turn < moment; turn++) await new Promise((resolve) => setImmediate(resolve));
    use.body.destroy();
    assert.equal(['client', 'failed'].includes((await use.result).ended), true);
  }
  const use = startUse(channel, spec, Readable.from([Buffer.from('last')]), undefined);
  assert.equal((await bodyOf(use)).toString(), 'last');
  assert.equal(channel.openStreams, 0);
  while (server.openStreams > 0) await new Promise((resolve) => setImmediate(resolve));
  channel.close();
});
