// The memory of responses that clients do not read is bounded for each caller and in total.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { type Answering, UnreadResponses } from '../../src/http/request-order.ts';

const MIB = 1024 * 1024;

/** A response of which that many bytes wait. */
function waiting(bytes: number) {
  const state = { isDestroyed: false };
  const response = {
    writableLength: bytes,
    get destroyed() {
      return state.isDestroyed;
    },
    destroy: () => {
      state.isDestroyed = true;
    },
  };
  return { state, response: response as unknown as ServerResponse };
}

function openScene(t: TestContext, limits: { bytesPerCaller: number; bytesInTotal: number }) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const closed: [string, number][] = [];
  const answering: Answering[] = [];
  const unread = new UnreadResponses(
    () => answering.filter(({ response }) => !response.destroyed),
    (caller, count) => closed.push([caller.replace('agent ', ''), count]),
    { ...limits, checkMs: 100 },
  );
  t.after(() => unread.stop());
  const add = (caller: string | null, bytes: number, sendsList = false) => {
    const { state, response } = waiting(bytes);
    const auth = caller === null ? null : { kind: 'session', agentName: caller };
    const fastifyRequest = { auth, sendsList, ip: '192.0.2.1' } as unknown as FastifyRequest;
    // Later ones come first: the time decides.
    answering.unshift({ response, startedAt: answering.length, fastifyRequest });
    return { isDestroyed: () => state.isDestroyed };
  };
  return { closed, add, check: () => t.mock.timers.tick(100) };
}

test('a caller over its share loses the oldest of its connections, and others lose none', (t) => {
  const { closed, add, check } = openScene(t, { bytesPerCaller: 10 * MIB, bytesInTotal: 100 * MIB });
  const greedy = [4, 4, 0, 4, 4].map((size) => add('greedy', size * MIB));
  const calm = [add('calm', 9 * MIB), add('calm', 0)];
  check();
  assert.deepEqual(
    greedy.map(({ isDestroyed }) => isDestroyed()),
    [true, true, false, false, false],
  );
  assert.ok(calm.every(({ isDestroyed }) => !isDestroyed()));
  assert.deepEqual(closed, [['greedy', 2]]);
  check();
  assert.equal(closed.length, 1);
});

test('a list counts with the rows that it holds, also while it waits for its turn', (t) => {
  const { closed, add, check } = openScene(t, { bytesPerCaller: 10 * MIB, bytesInTotal: 100 * MIB });
  for (let n = 0; n < 12; n++) add('reader', 0, true);
  check();
  assert.deepEqual(closed, [['reader', 7]]);
});

test('all callers together hold no more than the total, and what has waited longest is closed first', (t) => {
  const { closed, add, check } = openScene(t, { bytesPerCaller: 10 * MIB, bytesInTotal: 20 * MIB });
  const [idle, ...others] = [0, 4, 5, 5, 9].map((size, index) => add(`caller ${index}`, size * MIB));
  check();
  assert.deepEqual(
    others.map(({ isDestroyed }) => isDestroyed()),
    [true, false, false, false],
  );
  assert.equal(idle?.isDestroyed(), false);
  assert.deepEqual(closed, [['caller 1', 1]]);
});

test('clients without a token are not counted: what they get is small, or the same for all', (t) => {
  const { closed, add, check } = openScene(t, { bytesPerCaller: MIB, bytesInTotal: MIB });
  add(null, 9 * MIB);
  check();
  assert.deepEqual(closed, []);
});

test('a client that does not read is cut, and one that reads beside it is served', async (t) => {
  const closed = Promise.withResolvers<[string, number]>();
  const answering = new Set<Answering>();
  const limits = { bytesPerCaller: MIB, bytesInTotal: 100 * MIB, checkMs: 10 };
  const unread = new UnreadResponses(
    () => answering,
    (caller, count) => closed.resolve([caller, count]),
    limits,
  );
  t.after(() => unread.stop());
  // More than the buffers of two sockets hold.
  const body = Buffer.alloc(64 * MIB);
  const server = createServer((request, response) => {
    const fastifyRequest = { auth: { kind: 'session', agentName: request.url }, sendsList: false };
    const entry = { response, startedAt: 0, fastifyRequest: fastifyRequest as unknown as FastifyRequest };
    answering.add(entry);
    response.on('close', () => answering.delete(entry));
    response.end(request.url === '/silent' ? body : 'read');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const ask = async (path: string): Promise<IncomingMessage> => {
    const [response] = await once(get({ port, path, agent: false }), 'response');
    return response;
  };
  const silent = await ask('/silent');
  silent.pause();
  assert.deepEqual(await closed.promise, ['agent /silent', 1]);
  const reading = await ask('/reading');
  assert.deepEqual(await reading.toArray(), [Buffer.from('read')]);
  await assert.rejects(silent.toArray(), { code: 'ECONNRESET' });
});
