/** The cache of leases: off by default, bounded, and never valid for longer than the service's lease. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Leasehold } from '../../src/client/leasehold.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { type Scene, setScene, throughProxy } from './fixture.ts';

const shared = await setScene({ after });

const path = 'prod/db/password';
const HOUR_MS = 3_600_000;
const leaseOf = async (vault: Leasehold, more = {}): Promise<string> =>
  (await vault.credentials.retrieve(path, more)).lease_id;
const retrievals = ({ between }: Scene): number => between.count(`GET /api/v1/credentials/${path}`);

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
  assert.equal(retrievals(scene), 4);
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
  test(`with the clock of the service an hour ${where}, an entry is used within its lease and not after it`, async (t) => {
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
