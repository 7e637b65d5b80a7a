// Idle connections are closed; slow ones are not.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CALLER_TIMEOUTS, setTimeouts } from '../../src/http/connections.ts';
import { until } from '../kit/log-receivers.ts';

const SILENCE_MS = 800;

async function serve(t: TestContext, answer: RequestListener) {
  const server = createServer(answer);
  setTimeouts(server, { ...CALLER_TIMEOUTS, silenceMs: SILENCE_MS });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  return async () => {
    const socket = connect(port, '127.0.0.1');
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    const seen = { isClosed: false, closedAt: 0, bytes: 0 };
    socket.on('close', () => {
      seen.isClosed = true;
      seen.closedAt = performance.now();
    });
    socket.on('data', (chunk) => {
      seen.bytes += chunk.length;
    });
    return { socket, seen };
  };
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';

test('an idle connection is closed; one that sends its request slowly stays open', async (t) => {
  const open = await serve(t, (_request, response) => {
    response.write('the beginning of an answer');
  });
  const silent = await open();
  silent.socket.write(REQUEST);
  const silentSince = performance.now();
  // Where the machine stops for a while, the slow one is silent too.
  let hasStopped = true;
  for (let tries = 0; tries < 20 && hasStopped; tries++) {
    const slow = await open();
    slow.socket.write('GET / HTTP/1.1\r\nX: ');
    let [writtenAt, longest] = [performance.now(), 0];
    const write = (): void => {
      slow.socket.write('a');
      longest = Math.max(longest, performance.now() - writtenAt);
      writtenAt = performance.now();
    };
    const timer = setInterval(write, 50);
    t.after(() => clearInterval(timer));
    await sleep(2 * SILENCE_MS);
    hasStopped = slow.seen.isClosed && longest > SILENCE_MS / 2;
    assert.equal(slow.seen.isClosed && !hasStopped, false);
    clearInterval(timer);
  }
  assert.equal(hasStopped, false, 'the machine never went on for long enough');
  await until(() => silent.seen.isClosed);
  const closedAfterMs = silent.seen.closedAt - silentSince;
  assert.ok(closedAfterMs < 20 * SILENCE_MS, `closed after ${closedAfterMs} ms`);
});

test('a large response can be read slowly; one that is not read is cut off', async (t) => {
  const size = 30_000_000;
  const open = await serve(t, (_request, response) => response.end('x'.repeat(size)));
  const [slow, stopped] = [await open(), await open()];
  for (const { socket } of [slow, stopped]) {
    socket.write(REQUEST);
    socket.pause();
  }
  // About 10 MB per second; the kernels at both ends buffer some megabytes.
  const timer = setInterval(() => {
    const until = slow.seen.bytes + 200_000;
    slow.socket.resume();
    slow.socket.on('data', function pauseAfter() {
      if (slow.seen.bytes < until) return;
      slow.socket.pause().off('data', pauseAfter);
    });
  }, 20);
  t.after(() => clearInterval(timer));
  const begunAt = performance.now();
  while (slow.seen.bytes < size && !slow.seen.isClosed) await sleep(20);
  const tookMs = performance.now() - begunAt;
  clearInterval(timer);
  assert.ok(slow.seen.bytes >= size, `cut after ${slow.seen.bytes} bytes`);
  assert.ok(tookMs > 2 * SILENCE_MS, `read in ${tookMs} ms: too fast to tell`);
  stopped.socket.resume();
  await until(() => stopped.seen.isClosed);
  assert.ok(stopped.seen.bytes < size, 'the response that was not read was not cut off');
});
