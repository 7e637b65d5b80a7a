/** Calls can be aborted at any moment with the caller's reason, and no attempt exceeds its time limit. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import { until } from '../kit/log-receivers.ts';
import { setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

const path = 'prod/db/password';
const reason = new Error('no longer wanted');

test('a call that is aborted before it begins sends nothing and does not log in', async (t) => {
  const { asAdmin, asAgent, between } = await throughProxy(t, shared);
  const signal = AbortSignal.abort(reason);
  for (const vault of [asAdmin(), asAgent()]) {
    await assert.rejects(vault.credentials.retrieve(path, { signal }), reason);
    await assert.rejects(vault.policies.list({}, { signal }), reason);
    await assert.rejects(vault.audit.export({ signal }), reason);
  }
  await assert.rejects(asAgent().logIn({ signal }), reason);
  assert.equal(between.seen.length, 0);
});

test('a call can be aborted while it waits for a response', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  const stop = new AbortController();
  between.next('silence');
  const call = asAdmin({ retries: 0 }).credentials.retrieve(path, { signal: stop.signal });
  await until(() => between.seen.length === 1);
  stop.abort(reason);
  await assert.rejects(call, reason);
});

test('a call can be aborted while it waits for a retry', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  const stop = new AbortController();
  const body = JSON.stringify({ error: { code: 'UNAVAILABLE', message: 'Later.' } });
  between.next({ status: 503, headers: { 'retry-after': '30' }, body });
  const answered = Promise.withResolvers<void>();
  const watched: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const text = await response.text();
    answered.resolve();
    return new Response(text, response);
  };
  const call = asAdmin({ fetch: watched }).credentials.retrieve(path, { signal: stop.signal });
  await answered.promise;
  await settled();
  stop.abort(reason);
  await assert.rejects(call, reason);
});

test('aborting one of several calls that wait for a login does not affect the others', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  const stop = new AbortController();
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  between.next({ after: held }, ({ path: asked }) => asked === '/auth/verify');
  const leaving = vault.credentials.retrieve(path, { signal: stop.signal });
  const staying = vault.credentials.retrieve(path);
  await until(() => between.count('POST /auth/verify') === 1);
  stop.abort(reason);
  await assert.rejects(leaving, reason);
  letGo();
  assert.equal((await staying).path, path);
  assert.equal(between.count('POST /auth/verify'), 1);
});

test('a login whose callers were all aborted serves the next call, and its failure rejects nothing', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  const stop = new AbortController();
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  between.next({ after: held }, ({ path: asked }) => asked === '/auth/verify');
  const left = vault.credentials.retrieve(path, { signal: stop.signal });
  await until(() => between.count('POST /auth/verify') === 1);
  stop.abort(reason);
  await assert.rejects(left, reason);
  const next = vault.credentials.retrieve(path);
  letGo();
  await next;
  assert.equal(between.count('POST /auth/verify'), 1);

  const failed = Promise.withResolvers<void>();
  const watched: typeof fetch = (input, init) =>
    fetch(input, init).catch((error: unknown) => {
      failed.resolve();
      throw error;
    });
  const other = asAgent({ retries: 0, fetch: watched });
  between.next('cut before', ({ path: asked }) => asked === '/auth/verify');
  const gone = new AbortController();
  const { promise: challenged, resolve: challenge } = Promise.withResolvers<void>();
  between.next({ after: challenged }, ({ path: asked }) => asked === '/auth/challenge');
  const failing = other.credentials.retrieve(path, { signal: gone.signal });
  await until(() => between.count('POST /auth/challenge') === 2);
  gone.abort(reason);
  await assert.rejects(failing, reason);
  challenge();
  await failed.promise;
  await settled();
  assert.equal((await other.credentials.retrieve(path)).path, path);
});

test('an unresponsive service times out, separately for each attempt', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  between.next('silence');
  const startedAt = performance.now();
  await assert.rejects(asAdmin({ timeoutMs: 200, retries: 0 }).credentials.retrieve(path), {
    ...withCode('TIMED_OUT', null),
    message: `no response from ${between.address} within 0.2 s`,
  });
  const tookMs = performance.now() - startedAt;
  assert.ok(tookMs >= 190, `${tookMs} ms`);
  between.next('silence');
  assert.equal((await asAdmin({ timeoutMs: 2000 }).credentials.retrieve(path)).path, path);
});

test('a response that stops in the middle times out', async (t) => {
  const { asAdmin } = await throughProxy(t, shared);
  const stalled: typeof fetch = async (_input, init) => {
    const body = new ReadableStream({
      start(controller) {
        controller.enqueue(new TextEncoder().encode('{"data":'));
        init?.signal?.addEventListener('abort', () => controller.error(init.signal?.reason));
      },
    });
    return new Response(body);
  };
  const vault = asAdmin({ timeoutMs: 200, retries: 0, fetch: stalled });
  await assert.rejects(vault.credentials.retrieve(path), withCode('TIMED_OUT', null));
});
