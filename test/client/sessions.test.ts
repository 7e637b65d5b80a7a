/**
 * An agent's sessions: one for all calls, replaced before it expires or after it was ended, and none after a logout.
 * The cache of leases: off by default, bounded, and never valid for longer than the server's lease.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Leasehold } from '../../src/client/leasehold.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { AGENT, type Scene, setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

const MINUTE_MS = 60_000;
const path = 'prod/db/password';
const retrieve = (vault: Leasehold) => vault.credentials.retrieve(path);
const retrievals = `GET /api/v1/credentials/${path}`;

test('concurrent first calls share one login, and all later calls its session', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  await Promise.all(Array.from({ length: 20 }, () => retrieve(vault)));
  await retrieve(vault);
  assert.deepEqual([between.count('POST /auth/challenge'), between.count('POST /auth/verify')], [1, 1]);
  const tokens = new Set(
    between.seen.filter(({ method }) => method === 'GET').map(({ headers }) => headers.authorization),
  );
  assert.equal(tokens.size, 1);
  assert.equal(
    between.seen.some(({ path: asked, headers }) => asked.startsWith('/auth/') && headers.authorization !== undefined),
    false,
  );
});

test('a session is replaced a minute before it expires, without a rejected call', async (t) => {
  const clock = startTestClock(t);
  const { asAgent, between } = await setScene(t);
  const vault = asAgent();
  const first = await vault.logIn();
  await clock.move(58 * MINUTE_MS);
  assert.equal((await vault.logIn()).session_id.reveal(), first.session_id.reveal());
  await clock.move(1.5 * MINUTE_MS);
  await Promise.all([retrieve(vault), retrieve(vault)]);
  assert.equal(between.count('POST /auth/verify'), 2);
  assert.equal(between.count(retrievals), 2);
  assert.notEqual((await vault.logIn()).session_id.reveal(), first.session_id.reveal());
});

test('a session that was ended is replaced once for all calls that notice it', async (t) => {
  const { asAgent, between, admin } = await throughProxy(t, shared);
  const vault = asAgent();
  await retrieve(vault);
  await admin.agents.deregister(AGENT);
  await assert.rejects(retrieve(vault), withCode('BAD_KEY', null), 'its key was deleted with the agent');

  await admin.agents.register({ name: AGENT });
  await Promise.all([retrieve(vault), retrieve(vault), retrieve(vault)]);
  assert.equal(between.count('POST /auth/verify'), 2);

  const other = asAgent();
  const { session_id } = await other.logIn();
  // Another client with the same token ends the session.
  await fetch(`${between.address}/auth/session`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${session_id.reveal()}` },
  });
  const before = between.count(retrievals);
  await Promise.all([retrieve(other), retrieve(other), retrieve(other)]);
  assert.equal(between.count('POST /auth/verify'), 4);
  assert.ok(between.count(retrievals) - before <= 6);
});

test('a server that rejects each new session too is not called indefinitely', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  const refusal = JSON.stringify({ error: { code: 'SESSION_EXPIRED', message: 'The session has ended.' } });
  for (let at = 0; at < 5; at++) between.next({ status: 401, body: refusal }, ({ method }) => method === 'GET');
  await assert.rejects(retrieve(vault), withCode('SESSION_EXPIRED', 401));
  assert.equal(between.count(retrievals), 2);
});

test('logging out ends the session for all calls, and the next call begins another', async (t) => {
  const { asAgent, asAdmin, between } = await throughProxy(t, shared);
  const vault = asAgent();
  await vault.logOut();
  assert.equal(between.seen.length, 0, 'there was none');
  const { session_id } = await vault.logIn();
  await vault.logOut();
  await vault.logOut();
  assert.equal(between.count('DELETE /auth/session'), 1);
  const stolen = { headers: { authorization: `Bearer ${session_id.reveal()}` } };
  assert.equal((await fetch(`${between.address}/auth/session`, stolen)).status, 401);
  await retrieve(vault);
  assert.equal(between.count('POST /auth/verify'), 2);
  await assert.rejects(asAdmin().logIn(), withCode('BAD_OPTIONS', null));
});

test('logging out waits for a login in flight, and never starts a session to end it', async (t) => {
  const { asAgent, between, admin } = await setScene(t);
  const vault = asAgent();
  const [session] = await Promise.all([vault.logIn(), vault.logOut()]);
  const headers = { authorization: `Bearer ${session.session_id.reveal()}` };
  assert.equal((await fetch(`${between.address}/auth/session`, { headers })).status, 401);

  await vault.logIn();
  await admin.agents.deregister(AGENT);
  await vault.logOut();
  assert.equal(between.count('POST /auth/verify'), 2);
});

test('a logout whose response was lost succeeds', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  await vault.logIn();
  between.next('cut after', ({ method }) => method === 'DELETE');
  await vault.logOut();
  assert.deepEqual([between.count('DELETE /auth/session'), between.count('POST /auth/verify')], [2, 1]);
});

const HOUR_MS = 3_600_000;
const leaseOf = async (vault: Leasehold, more = {}): Promise<string> =>
  (await vault.credentials.retrieve(path, more)).lease_id;
const retrievalsOf = ({ between }: Scene): number => between.count(`GET /api/v1/credentials/${path}`);

test('within a lease the same value and lease are returned, without a request and without an audit entry', async (t) => {
  const scene = await throughProxy(t, shared);
  const vault = scene.asAgent({ cache: 10 });
  const countRetrievals = async () => (await scene.admin.audit.list({ action: 'retrieve' })).meta.total;
  const before = await countRetrievals();
  const first = await vault.credentials.retrieve(path);
  const { length } = scene.between.seen;
  for (let at = 0; at < 5; at++) assert.equal(await vault.credentials.retrieve(path), first);
  assert.equal(scene.between.seen.length, length);
  assert.equal(await countRetrievals(), before + 1);
});

test('another version or ttl is a separate lease, and useCache: false sends a request', async (t) => {
  const scene = await setScene(t);
  await scene.admin.credentials.store({ path, value: 'second' });
  const vault = scene.asAgent({ cache: 10 });
  const leases = [
    await leaseOf(vault),
    await leaseOf(vault, { version: 1 }),
    await leaseOf(vault, { ttlSeconds: 100 }),
    await leaseOf(vault, { useCache: false }),
  ];
  assert.equal(new Set(leases).size, 4);
  assert.equal((await vault.credentials.retrieve(path, { version: 1 })).value.reveal(), 'correct horse');
  assert.equal((await vault.credentials.retrieve(path)).value.reveal(), 'second');
  assert.equal(retrievalsOf(scene), 4);
  assert.equal(await leaseOf(vault), leases[3], 'the newest lease is the one that is kept');
});

test('when the cache is full, the least recently used path is evicted', async (t) => {
  const scene = await throughProxy(t, shared);
  for (const name of ['a', 'b', 'c']) await scene.admin.credentials.store({ path: `prod/${name}`, value: name });
  const vault = scene.asAgent({ cache: 2 });
  const use = (name: string) => vault.credentials.retrieve(`prod/${name}`);
  for (const name of ['a', 'b', 'a', 'c', 'a', 'b']) assert.equal((await use(name)).value.reveal(), name);
  const counts = ['a', 'b', 'c'].map((name) => scene.between.count(`GET /api/v1/credentials/prod/${name}`));
  assert.deepEqual(counts, [1, 2, 1]);
});

test('storing, deleting, renewing, revoking and logging out invalidate entries, even when they fail', async (t) => {
  const scene = await setScene(t);
  const vault = scene.asAdmin({ cache: 10, retries: 0 });
  const stored = await vault.credentials.retrieve(path);
  const changes: ((leaseId: string) => Promise<unknown>)[] = [
    () => vault.credentials.store({ path, value: 'new' }),
    () => vault.leases.renew(stored.lease_id).then(() => vault.leases.revokeAll({ path })),
    (leaseId) => vault.leases.revoke(leaseId),
    (leaseId) => vault.leases.renew(leaseId),
    () => vault.leases.revokeAll({ agent: 'admin' }),
    () => vault.credentials.delete(path).then(() => scene.admin.credentials.store({ path, value: 'again' })),
    () => {
      scene.between.next('cut after');
      return vault.credentials.store({ path, value: 'perhaps' }).catch(() => undefined);
    },
    () => Promise.resolve(vault.credentials.forgetCached()),
  ];
  for (const change of changes) {
    const before = await leaseOf(vault);
    assert.equal(await leaseOf(vault), before);
    await change(before);
    assert.notEqual(await leaseOf(vault), before, String(change));
  }
  const agent = scene.asAgent({ cache: 10 });
  const before = await leaseOf(agent);
  await agent.logOut();
  assert.notEqual(await leaseOf(agent), before);
});

test('a retrieval in flight during a change by this client is not cached', async (t) => {
  const scene = await setScene(t);
  const vault = scene.asAdmin({ cache: 10 });
  let letGo = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  // The value is read before the change; the lease is requested after it.
  scene.between.next({ after: held }, ({ path: asked }) => asked.startsWith('/api/v1/leases/'));
  const early = vault.credentials.retrieve(path);
  while (!scene.between.seen.some(({ path: asked }) => asked.startsWith('/api/v1/leases/'))) await sleep(5);
  await vault.credentials.store({ path, value: 'new' });
  letGo();
  assert.equal((await early).value.reveal(), 'correct horse');
  assert.equal((await vault.credentials.retrieve(path)).value.reveal(), 'new');
});

test('if this machine’s clock is set or the machine sleeps, entries still expire', async (t) => {
  const clock = startTestClock(t);
  const scene = await setScene(t);
  const vault = scene.asAgent({ cache: 10 });
  const before = await leaseOf(vault, { ttlSeconds: 60 });
  await clock.move(-HOUR_MS);
  assert.equal(await leaseOf(vault, { ttlSeconds: 60 }), before, 'the other clock still counts');
  await clock.move(HOUR_MS + 60_000);
  assert.notEqual(await leaseOf(vault, { ttlSeconds: 60 }), before);
});

for (const [where, aheadMs] of [
  ['ahead', HOUR_MS],
  ['behind', -HOUR_MS],
] as const) {
  test(`with the clock of the server an hour ${where}, an entry is used within its lease and not after it`, async (t) => {
    const clock = startTestClock(t);
    let issued = 0;
    /** Retrievals and reads of leases of 60 seconds, by the other clock; the Date header has this one. */
    const answer: typeof fetch = async (input) => {
      const isRetrieval = String(input).includes('/credentials/');
      if (isRetrieval) issued += 1;
      const [issued_at, expires_at] = [0, 60_000].map((ms) => new Date(Date.now() + aheadMs + ms).toISOString());
      const lease = { lease_id: String(issued), path, issued_at, expires_at, status: 'active' };
      const headers = { date: new Date().toUTCString() };
      return Response.json({ data: isRetrieval ? { ...lease, value: 'v' } : lease }, { headers });
    };
    const vault = new Leasehold({ address: 'http://127.0.0.1:1', token: 'lha_x', cache: 10, fetch: answer });
    const first = await leaseOf(vault);
    await clock.move(30_000);
    assert.equal(await leaseOf(vault), first);
    await clock.move(30_000);
    assert.notEqual(await leaseOf(vault), first);
  });
}
