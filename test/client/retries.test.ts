/**
 * Tries of a call: each can be aborted at any moment with the caller's reason and has a time limit. Also covers which
 * calls are retried, how often, and that no call can take effect twice.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setImmediate as settled } from 'node:timers/promises';
import { LeaseholdError } from '../../src/client/errors.ts';
import { backoffMs } from '../../src/client/retries.ts';
import { until } from '../kit/log-receivers.ts';
import type { Act } from './fault-proxy.ts';
import { AGENT, setScene, throughProxy, withCode } from './fixture.ts';

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

test('an unresponsive server times out, separately for each attempt', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  between.next('silence');
  const startedAt = performance.now();
  await assert.rejects(asAdmin({ timeoutMs: 200, retries: 0 }).credentials.retrieve(path), {
    ...withCode('TIMED_OUT', null),
    message: `no response from ${between.address} within 0.2 s`,
  });
  const tookMs = performance.now() - startedAt;
  assert.ok(tookMs >= 190, `${tookMs} ms`);
  // WHY another proxy: on a busy machine the request that timed out may arrive now, and take the fault of this one.
  const other = await throughProxy(t, shared);
  other.between.next('silence');
  assert.equal((await other.asAdmin({ timeoutMs: 2000 }).credentials.retrieve(path)).path, path);
  assert.ok(other.between.count(retrieval) >= 2);
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

const retrieval = `GET /api/v1/credentials/${path}`;
const body = (code: string) => JSON.stringify({ error: { code, message: 'As the server says it.' } });

test('a request with an Idempotency-Key whose response was lost takes effect once: each attempt has the same key', async (t) => {
  const { asAdmin, between, admin } = await throughProxy(t, shared);
  const vault = asAdmin();
  const isPost = ({ method }: { method: string }) => method === 'POST';
  for (const act of ['cut after', 'cut before'] as const) {
    between.next(act, isPost);
    await vault.credentials.store({ path: `prod/${act.replace(' ', '-')}`, value: 'x' });
    assert.equal((await admin.credentials.readMetadata(`prod/${act.replace(' ', '-')}`)).versions.length, 1);
  }
  between.next('cut after', isPost);
  assert.equal((await vault.agents.register({ name: 'ci' })).name, 'ci');
  between.next('cut after', isPost);
  await vault.policies.create({ name: 'ci', principal: 'agent:ci', resources: ['ci/*'], actions: ['list'] });
  await admin.leases.revokeAll({ path });
  const { lease_id } = await vault.credentials.retrieve(path);
  between.next('cut after', isPost);
  await vault.leases.renew(lease_id);
  between.next('cut after', isPost);
  assert.deepEqual(await vault.leases.revokeAll({ path }), { revoked: 1 });

  const keys = between.seen.filter(isPost).map(({ headers }) => headers['idempotency-key']);
  assert.equal(keys.length, 12);
  for (let at = 0; at < keys.length; at += 2) assert.ok(keys[at] !== undefined && keys[at] === keys[at + 1]);
  assert.equal(new Set(keys).size, 6);
});

test('a deletion by id whose response was lost is retried and succeeds', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  const vault = asAdmin();
  const { lease_id } = await vault.credentials.retrieve(path);
  between.next('cut after', ({ method }) => method === 'DELETE');
  assert.equal(await vault.leases.revoke(lease_id), undefined);
  assert.equal(between.seen.filter(({ method }) => method === 'DELETE').length, 2);
});

test('a verify request is never repeated: the whole login starts again', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  between.next('cut after', ({ path: asked }) => asked === '/auth/verify');
  await asAgent().credentials.retrieve(path);
  const ids = between.seen.flatMap(({ path: asked, body: sent }) =>
    asked === '/auth/verify' ? [JSON.parse(sent)] : [],
  );
  assert.equal(new Set(ids.map(({ challenge_id }) => challenge_id)).size, 2);
  assert.equal(ids.length, 2);
});

test('reads are retried as often as configured, and then the last error is thrown', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  for (const retries of [0, 2]) {
    const vault = asAdmin({ retries });
    const before = between.seen.length;
    for (let at = 0; at <= retries; at++) between.next('cut before');
    await assert.rejects(vault.policies.read('reads'), withCode('UNREACHABLE', null));
    assert.equal(between.seen.length - before, retries + 1);
  }
  const vault = asAdmin({ retries: 1 });
  const before = (await vault.leases.list({ path })).data.length;
  between.next('cut after');
  assert.equal((await vault.credentials.retrieve(path)).path, path);
  assert.equal((await vault.leases.list({ path })).data.length, before + 2, 'the lease of the lost response expires');
});

test('transient errors are retried; a decision or an invalid request is not', async (t) => {
  const { asAdmin, between } = await throughProxy(t, shared);
  const vault = asAdmin({ retries: 1 });
  const tries = async (act: Act): Promise<number> => {
    const before = between.count(retrieval);
    between.next(act);
    await vault.credentials.retrieve(path).catch(() => undefined);
    return between.count(retrieval) - before;
  };
  for (const code of ['UNAVAILABLE', 'VAULT_LOCKED']) assert.equal(await tries({ status: 503, body: body(code) }), 2);
  assert.equal(await tries({ status: 429, body: body('RATE_LIMITED') }), 2);
  for (const status of [502, 503, 504]) assert.equal(await tries({ status, body: '<h1>No server</h1>' }), 2);
  for (const [status, code] of [
    [400, 'INVALID_REQUEST'],
    [403, 'ACCESS_DENIED'],
    [404, 'NOT_FOUND'],
    [500, 'INTERNAL_ERROR'],
    [500, 'INTEGRITY_FAILURE'],
    [418, 'SOMETHING_NEW'],
  ] as const) {
    assert.equal(await tries({ status, body: body(code) }), 1, code);
  }
});

test('delays double with jitter, stop growing at ten seconds, and are never shorter than Retry-After', () => {
  const lost = new LeaseholdError('UNREACHABLE', 'lost');
  const busy = (retryAfterSeconds: number) => new LeaseholdError('UNAVAILABLE', 'busy', { retryAfterSeconds });
  assert.deepEqual(
    [1, 2, 3, 4].map((tried) => backoffMs(tried, lost, 1)),
    [100, 200, 400, 800],
  );
  assert.deepEqual([backoffMs(1, lost, 0), backoffMs(40, lost, 1)], [50, 10_000]);
  assert.equal(new Set(Array.from({ length: 20 }, () => backoffMs(3, lost))).size, 20);
  assert.deepEqual([backoffMs(1, busy(2), 0), backoffMs(1, busy(60), 1)], [2050, 60_100]);
  assert.equal(backoffMs(1, busy(61)), null, 'too long to wait: the error is thrown');
  assert.equal(backoffMs(1, new LeaseholdError('ACCESS_DENIED', 'no')), null);
});

test('a deletion or replacement by name that may have taken effect is not retried, because the name may be reused', async (t) => {
  const { asAdmin, between, admin } = await throughProxy(t, shared);
  const vault = asAdmin();
  const changes = [
    () => vault.credentials.delete(path),
    () => vault.policies.put('reads', { principal: `agent:${AGENT}`, resources: ['x'], actions: ['retrieve'] }),
    () => vault.policies.delete('reads'),
    () => vault.agents.deregister(AGENT),
  ];
  const isChange = ({ method }: { method: string }) => method === 'DELETE' || method === 'PUT';
  for (const change of changes) {
    between.next('cut after', isChange);
    await assert.rejects(change(), { code: 'UNREACHABLE' });
  }
  assert.equal(between.seen.filter(isChange).length, changes.length);
  await assert.rejects(admin.credentials.readMetadata(path), withCode('NOT_FOUND', 404));
  between.next({ status: 503, body: body('VAULT_LOCKED') }, isChange);
  await assert.rejects(
    vault.credentials.delete('prod/nothing'),
    withCode('NOT_FOUND', 404),
    'it was rejected at the first attempt',
  );
});
