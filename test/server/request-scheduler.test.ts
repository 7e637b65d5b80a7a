// How many requests of one caller start while another one is active. test/hostile/fairness.test.ts shows it on sockets.

import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import { LargeBodies, RequestScheduler } from '../../src/http/request-scheduler.ts';

/** A request of an agent, or without one of a client at an address, at a public route. */
function request(agentName: string | null, bodyBytes: number): FastifyRequest {
  return {
    auth: agentName === null ? null : { kind: 'agent', agentName },
    ip: '192.0.2.1',
    routeOptions: { config: { permission: agentName === null ? null : 'lease.list' } },
    raw: { headers: { 'content-length': String(bodyBytes) } },
  } as unknown as FastifyRequest;
}

function openScene(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let milliseconds = 0;
  const fairStart = new RequestScheduler({ now: () => milliseconds });
  const pass = (ms: number): void => {
    for (let passed = 0; passed < ms; passed++) {
      milliseconds += 1;
      t.mock.timers.tick(1);
    }
  };
  /** Starts the requests, as far as they may. Returns how many have started so far. */
  const run = (count: number, asked: FastifyRequest): (() => number) => {
    let started = 0;
    for (let n = 0; n < count; n++) fairStart.run(asked, () => (started += 1));
    return () => started;
  };
  return { fairStart, pass, run };
}

test('the only active caller does not wait', (t) => {
  const { pass, run } = openScene(t);
  run(1, request('calm', 0));
  // The caller before it counts as active for as long.
  pass(101);
  assert.equal(run(100, request('calm', 100_000))(), 100);
});

for (const [what, agentName, bodyBytes, atMost] of [
  // 16 credits a millisecond; a request costs one, six without a token, and one more for each KiB of its body.
  ['an agent, small requests', 'greedy', 0, 16 * 20 + 16],
  ['an agent, bodies of 2 MiB', 'greedy', 2 * 1024 * 1024, 1],
  ['a client without a token, challenges', null, 0, (16 * 20) / 6 + 4],
  ['a client without a token, bodies of 32 KiB', null, 32 * 1024, (16 * 20) / 38 + 2],
] as const) {
  test(`of ${what}, few start in 20 ms beside another caller, who does not wait`, (t) => {
    const { pass, run } = openScene(t);
    run(1, request('calm', 0));
    const greedy = run(1000, request(agentName, bodyBytes));
    for (let tick = 0; tick < 20; tick++) {
      assert.equal(run(1, request('calm', 0))(), 1);
      pass(1);
    }
    assert.ok(greedy() >= 1 && greedy() <= atMost, `${greedy()} have started`);
  });
}

test('of one caller at most 1,024 requests wait', (t) => {
  const { fairStart, run } = openScene(t);
  run(1, request('calm', 0));
  run(1025, request('greedy', 2 * 1024 * 1024));
  assert.equal(
    fairStart.run(request('greedy', 0), () => assert.fail('it has started')),
    false,
  );
  assert.equal(run(1, request('calm', 0))(), 1);
});

test('of one caller two large bodies are read at a time, and the next ones in order', () => {
  const bodies = new LargeBodies();
  const begun: string[] = [];
  /** Returns the message, whose `end` says that all is read, and the response. */
  const enter = (caller: string, name: string, headers: Readonly<Record<string, string>>) => {
    const [raw, response] = [Object.assign(new EventEmitter(), { headers }), new EventEmitter()];
    const asked = { raw, routeOptions: {} } as unknown as FastifyRequest;
    bodies.enter(caller, asked, response, () => begun.push(name));
    return { raw, response };
  };
  const large = { 'content-length': String(2 * 1024 * 1024) };
  const [first, second, third] = ['1', '2', '3', '4', '5', '6'].map((name) => enter('greedy', name, large));
  enter('greedy', 'chunked', { 'transfer-encoding': 'chunked' });
  assert.deepEqual(begun, ['1', '2']);
  enter('greedy', 'small', { 'content-length': '100' });
  enter('calm', 'of another', large);
  assert.deepEqual(begun.splice(0), ['1', '2', 'small', 'of another']);
  // One that disconnects while it waits is never read.
  third?.response.emit('close');
  second?.raw.emit('end');
  assert.deepEqual(begun, ['4']);
  first?.response.emit('close');
  first?.raw.emit('end');
  assert.deepEqual(begun, ['4', '5']);
});
