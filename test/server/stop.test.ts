// Stopping: requests in flight finish within 10 s, new ones are rejected, idle connections are closed, and the exit
// code is 0.
// SOURCE: docs/decisions.md, "The process". test/spec tests that a started request finishes.

import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { createClient } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { type ServiceProcess, startProcess } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';

const BODY = '{"agent_name":"ci"}';
const HEAD = [
  'POST /auth/challenge HTTP/1.1',
  'Host: localhost',
  'Content-Type: application/json',
  'Expect: 100-continue',
];
const HEALTH = 'GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n';

interface Line {
  readonly socket: Socket;
  text(): string;
  /** Resolves when the response contains the text, or the connection has closed. */
  until(part: string): Promise<void>;
}

async function open({ address }: Pick<ServiceProcess, 'address'>): Promise<Line> {
  const { hostname, port } = new URL(address);
  let text = '';
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined).on('data', (chunk) => (text += chunk));
  await new Promise((resolve) => socket.once('connect', resolve));
  return {
    socket,
    text: () => text,
    async until(part) {
      while (!text.includes(part) && !socket.destroyed) {
        await new Promise((resolve) => socket.once('data', resolve).once('close', resolve));
      }
    },
  };
}

/** Sends a request with an incomplete body; resolves when the service has started to handle it. */
async function openSlow(service: Pick<ServiceProcess, 'address'>): Promise<Line> {
  const line = await open(service);
  line.socket.write(`${[...HEAD, `Content-Length: ${BODY.length}`].join('\r\n')}\r\n\r\n${BODY.slice(0, 5)}`);
  await line.until('100 Continue');
  return line;
}

/** Waits until the program reports the signal. */
async function untilStopping(service: ServiceProcess): Promise<void> {
  while (!service.output().includes('Stopping')) await wait(20);
}

/** The starts and stops in the log of the data directory, without the start that reads them. */
async function lifeOf(t: Parameters<typeof startTestService>[0], dataDir: string): Promise<string[]> {
  const { admin } = await startTestService(t, [], dataDir);
  const { data } = (await admin.get('/api/v1/audit?order=asc&agent=service')).body;
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
  return data.map(({ event_type }: { event_type: string }) => event_type).slice(0, -1);
}

describe('a service that receives a signal to stop', { concurrency: true }, () => {
  test('finishes requests in flight and accepts no new ones, on new or open connections', async (t) => {
    const dataDir = join(temporaryDirectory(t), 'data');
    const service = await startProcess(t, dataDir);
    const slow = await openSlow(service);
    const ended = service.end('SIGTERM');
    await untilStopping(service);
    await assert.rejects(createClient(service.address, null).get('/api/v1/health'));
    slow.socket.write(BODY.slice(5) + HEALTH);
    await slow.until('nonce');
    assert.match(slow.text(), /^HTTP\/1\.1 200 /m);
    await slow.until('stopping');
    assert.equal(slow.text().split('HTTP/1.1 200 ').length, 2, slow.text());
    slow.socket.destroy();
    assert.equal(await ended, 0);
    assert.deepEqual(await lifeOf(t, dataDir), ['service.start', 'service.stop']);
  });

  test('closes connections of unfinished requests at its time limit, and stops in order', async (t) => {
    const stopMs = 500;
    const dataDir = join(temporaryDirectory(t), 'data');
    const service = await startTestService(t, [], dataDir, undefined, { stopMs });
    const stuck = await openSlow(service);
    const silent = await open(service);
    const startedAt = performance.now();
    await service.stop();
    assert.ok(performance.now() - startedAt > stopMs - 50, 'what was in flight had its time');
    for (const { socket } of [stuck, silent]) socket.destroy();
    assert.deepEqual(await lifeOf(t, dataDir), ['service.start', 'service.stop']);
  });

  test('does not wait for idle connections', async (t) => {
    const service = await startTestService(t, [], undefined, undefined, { stopMs: 2 ** 31 - 1 });
    const resting = await Promise.all(Array.from({ length: 50 }, () => open(service)));
    for (const { socket } of resting) socket.write(HEALTH);
    await Promise.all(resting.map((line) => line.until('"ok"')));
    await service.stop();
    await Promise.all(resting.map(({ socket }) => socket.closed || new Promise((end) => socket.once('close', end))));
  });

  test('ignores further signals', async (t) => {
    const dataDir = join(temporaryDirectory(t), 'data');
    const service = await startProcess(t, dataDir);
    const slow = await openSlow(service);
    const ended = service.end('SIGTERM');
    await untilStopping(service);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) service.child.kill(signal);
    await wait(300);
    assert.equal(service.child.exitCode, null);
    slow.socket.write(BODY.slice(5));
    await slow.until('nonce');
    assert.match(slow.text(), /^HTTP\/1\.1 200 /m);
    slow.socket.destroy();
    assert.equal(await ended, 0);
    assert.equal(service.output().split('Stopping').length, 2);
    assert.deepEqual(await lifeOf(t, dataDir), ['service.start', 'service.stop']);
  });

  test('stops in order after the reader of its output has closed, as with a terminal', async (t) => {
    const dataDir = join(temporaryDirectory(t), 'data');
    const service = await startProcess(t, dataDir);
    service.child.stdout?.destroy();
    service.child.stderr?.destroy();
    assert.equal((await createClient(service.address, 'none').get('/api/v1/agents')).status, 401);
    assert.equal(await service.end('SIGHUP'), 0);
    assert.deepEqual(await lifeOf(t, dataDir), ['service.start', 'service.stop']);
  });

  test('records one start and one stop per process, and after a kill a start without a stop', async (t) => {
    const dataDir = join(temporaryDirectory(t), 'data');
    for (const signal of ['SIGHUP', 'SIGKILL', 'SIGINT'] as const) {
      const service = await startProcess(t, dataDir);
      const code = await service.end(signal);
      assert.equal(code, signal === 'SIGKILL' ? 'SIGKILL' : 0, signal);
    }
    const life = ['start', 'stop', 'start', 'start', 'stop'].map((word) => `service.${word}`);
    assert.deepEqual(await lifeOf(t, dataDir), life);
  });
});
