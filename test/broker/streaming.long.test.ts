// Streams of any length at bounded memory, both ways: back-pressure reaches the upstream and the caller.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { PassThrough, Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { scaled } from '../kit/scale.ts';
import { bodyOf, headOf, specFor, startBroker, startUpstream } from './upstream.ts';

const MIB = 1024 * 1024;
/** Buffers of sockets and windows on the way. */
const MAX_BUFFERED_BYTES = 16 * MIB;
const CHUNK = Buffer.alloc(64 * 1024, 'a line of text\n');

const broker = startBroker({ after });
let written = 0;
let received = 0;
const chunksOf = function* (bytes: number) {
  for (let sent = 0; sent < bytes; sent += CHUNK.length) {
    written += CHUNK.length;
    yield CHUNK;
  }
};
const upstream = await startUpstream({ after }, (request, response) => {
  const url = new URL(request.url ?? '', 'http://x');
  const bytes = Number(url.searchParams.get('bytes'));
  if (url.pathname === '/upload') void receive(request, response);
  else if (url.pathname === '/bomb') {
    response.setHeader('content-encoding', 'gzip');
    pipeline(Readable.from(chunksOf(bytes)), createGzip(), response).catch(() => undefined);
  } else pipeline(Readable.from(chunksOf(bytes)), response).catch(() => undefined);
});
let isReading = true;
async function receive(request: Readable, response: ServerResponse): Promise<void> {
  for await (const chunk of request) {
    received += Buffer.from(chunk).length;
    while (!isReading) await sleep(10);
  }
  response.end(String(received));
}
/** Waits until the number has stopped growing. */
async function settled(read: () => number): Promise<number> {
  for (let last = -1; ; await sleep(150)) {
    if (read() === last) return last;
    last = read();
  }
}

function residentBytes(): number {
  const status = readFileSync(`/proc/${broker.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

test('a caller that does not read stops the upstream, and other uses continue', async () => {
  written = 0;
  const slow = Array.from({ length: 4 }, () =>
    broker.use(specFor(upstream, { path: `/download?bytes=${200 * MIB}` }), null),
  );
  for (const use of slow) await headOf(use);
  const sent = await settled(() => written);
  assert.equal(sent > 0 && sent / slow.length < MAX_BUFFERED_BYTES, true, `${sent} bytes`);
  const other = broker.use(specFor(upstream, { path: `/download?bytes=${MIB}` }), null);
  await headOf(other);
  assert.equal((await bodyOf(other)).length, MIB);
  for (const use of slow) use.body.destroy();
  for (const use of slow) assert.equal((await use.result).ended, 'client');
});

test('an upstream that does not read stops the caller', async () => {
  written = 0;
  received = 0;
  isReading = false;
  const length = 32 * MIB;
  const use = broker.use(
    specFor(upstream, { path: '/upload', method: 'POST', bodyLength: null }),
    Readable.from(chunksOf(length)),
  );
  const sent = await settled(() => written);
  assert.equal(sent < MAX_BUFFERED_BYTES, true, `${sent} bytes`);
  isReading = true;
  await headOf(use);
  assert.equal((await bodyOf(use)).toString(), String(length));
  assert.equal((await use.result).bytesIn, length);
});

test('a long stream and a decompression bomb pass at flat memory', async () => {
  const length = scaled(32, 1024) * MIB;
  for (const path of [`/download?bytes=${length}`, `/bomb?bytes=${length}`]) {
    const use = broker.use(specFor(upstream, { path }), null);
    await headOf(use);
    let [read, early, most] = [0, 0, 0];
    await pipeline(
      use.body,
      new Writable({
        write(chunk: Buffer, _encoding, done) {
          read += chunk.length;
          if (read < length / 4) early = residentBytes();
          else most = Math.max(most, residentBytes());
          done();
        },
      }),
    );
    assert.equal(read, length);
    assert.equal(most - early < 96 * MIB, true, `${early} to ${most}`);
    assert.equal((await use.result).bytesOut, length);
  }
});

test('many uses that are cut together leave the process and its connection usable', async () => {
  const pid = broker.pid;
  // More than Node's limit of resets, which is 1000.
  const refused = specFor(upstream, { allowNetworks: [] });
  const uses = Array.from({ length: 1500 }, () => broker.use(refused, new PassThrough()));
  for (const use of uses) use.body.destroy();
  await Promise.all(uses.map((use) => use.result));
  const next = broker.use(specFor(upstream, { path: `/download?bytes=${MIB}` }), null);
  await headOf(next);
  assert.equal((await bodyOf(next)).length, MIB);
  assert.equal(broker.pid, pid);
});
