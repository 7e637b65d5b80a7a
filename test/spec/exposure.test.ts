// Exposure of credentials, and the panic. SOURCE: docs/api.md, "Exposure and panic".
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const { admin } = service;
const upstream = await startUpstream({ after }, (_request, response) => void response.end('{}'));
const origin = `https://127.0.0.1:${upstream.port}`;
const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];

async function store(path: string): Promise<void> {
  const stored = await admin.post('/api/v1/credentials', { path, value: `value-of-${path}-0123456789` });
  assert.equal(stored.status, 201, stored.text);
}

const setTargets = (path: string) => admin.put(`/api/v1/targets/${path}`, { targets, placement: { kind: 'bearer' } });

const dataOf = ({ text }: { text: string }) => JSON.parse(text).data;
const exposureOf = async (path: string) => dataOf(await admin.get(`/api/v1/exposure/${path}`));
interface Item {
  readonly agent_name: string;
  readonly times: number;
  readonly live: boolean;
}
const brief = (items: readonly Item[]) => items.map(({ agent_name, times, live }) => `${agent_name} ${times} ${live}`);

test('each version names who has seen it and who has only used it, and who still holds it', async () => {
  await store('apart/key');
  await setTargets('apart/key');
  const reader = await service.agent('apart-reader', { 'apart/*': ['retrieve'] });
  const user = await service.agent('apart-user', { 'apart/*': ['use'] });
  const first = dataOf(await reader.get('/api/v1/credentials/apart/key'));
  const second = dataOf(await reader.get('/api/v1/credentials/apart/key'));
  const used = await user.post('/api/v1/use', { path: 'apart/key', method: 'GET', url: `${origin}/a` });
  assert.equal(used.status, 200, used.text);
  await store('apart/key');
  await reader.get('/api/v1/credentials/apart/key');
  const { path, versions } = await exposureOf('apart/key');
  assert.equal(path, 'apart/key');
  assert.deepEqual(
    versions.map((each: { version: number; deleted: boolean }) => [each.version, each.deleted]),
    [
      [1, false],
      [2, false],
    ],
  );
  assert.deepEqual(brief(versions[0].seen_by), ['apart-reader 2 true']);
  assert.deepEqual(brief(versions[0].used_by), ['apart-user 1 false']);
  assert.deepEqual(brief(versions[1].seen_by), ['apart-reader 1 true']);
  assert.deepEqual(versions[1].used_by, []);
  for (const { lease_id } of [first, second]) await reader.delete(`/api/v1/leases/${lease_id}`);
  const ended = await exposureOf('apart/key');
  assert.deepEqual(brief(ended.versions[0].seen_by), ['apart-reader 2 false']);
  const { first_at, last_at } = ended.versions[0].seen_by[0];
  assert.ok(first_at <= last_at, `${first_at} ${last_at}`);
});

test('a denied retrieval and a retrieval of a missing path expose nothing', async () => {
  await store('denied/key');
  const agent = await service.agent('denied-reader', { 'other/*': ['retrieve'] });
  await agent.get('/api/v1/credentials/denied/key');
  await agent.get('/api/v1/credentials/other/key');
  assert.deepEqual(await exposureOf('denied/key'), { path: 'denied/key', versions: [] });
  assert.deepEqual(dataOf(await admin.get('/api/v1/exposure?agent=denied-reader')), []);
  assert.equal((await admin.get('/api/v1/exposure/other/key')).status, 404);
});

test('an exposure outlives the credential and the agent, and is listed by the name of the agent', async () => {
  await store('outlived/b');
  await store('outlived/a');
  const agent = await service.agent('outlived', { 'outlived/*': ['retrieve'] });
  for (const path of ['outlived/b', 'outlived/a']) await agent.get(`/api/v1/credentials/${path}`);
  await admin.delete('/api/v1/credentials/outlived/b');
  await admin.delete('/api/v1/agents/outlived');
  const [of] = (await exposureOf('outlived/b')).versions;
  assert.deepEqual([of.version, of.deleted, ...brief(of.seen_by)], [1, true, 'outlived 1 false']);
  await store('outlived/b');
  const list = dataOf(await admin.get('/api/v1/exposure?agent=outlived'));
  assert.deepEqual(
    list.map((each: { path: string }) => each.path),
    ['outlived/a', 'outlived/b'],
  );
  assert.deepEqual(
    list.map((each: { versions: { deleted: boolean }[] }) => each.versions.map(({ deleted }) => deleted)),
    [[false], [true]],
  );
  const page = JSON.parse((await admin.get('/api/v1/exposure?agent=outlived&limit=1&offset=1')).text);
  assert.deepEqual([page.data.length, page.data[0].path, page.meta.total], [1, 'outlived/b', 2]);
});

test('a panic about one agent ends its leases and sessions and those of no other', async () => {
  await store('panic/seen');
  await store('panic/used');
  await setTargets('panic/used');
  const suspect = await service.agent('suspect', { 'panic/*': ['retrieve', 'use'] });
  const other = await service.agent('bystander', { 'panic/*': ['retrieve', 'use'] });
  const seen = dataOf(await suspect.get('/api/v1/credentials/panic/seen'));
  const kept = dataOf(await other.get('/api/v1/credentials/panic/seen'));
  const used = await suspect.post('/api/v1/use', { path: 'panic/used', method: 'GET', url: `${origin}/a` });
  assert.equal(used.status, 200, used.text);
  const heldBy = async (query = '') => dataOf(await admin.get(`/api/v1/panic${query}`));
  assert.deepEqual(await heldBy('?agent=suspect'), { leases: 1, sessions: 1, streams: 0 });
  const before = await heldBy();
  const answer = await admin.post('/api/v1/panic', { agent: 'suspect' });
  assert.equal(answer.status, 200, answer.text);
  const { leases, sessions, streams, rotate, used_only } = dataOf(answer);
  assert.deepEqual([leases, sessions, streams], [1, 1, 0]);
  assert.deepEqual(await heldBy('?agent=suspect'), { leases: 0, sessions: 0, streams: 0 });
  assert.deepEqual(await heldBy('?agent=bystander'), { leases: 1, sessions: 1, streams: 0 });
  assert.deepEqual(await heldBy(), { ...before, leases: before.leases - 1, sessions: before.sessions - 1 });
  assert.equal((await admin.get('/api/v1/panic?agent=nobody')).status, 404);
  assert.deepEqual(rotate, [{ path: 'panic/seen', version: 1, current: true }]);
  assert.deepEqual(used_only, [{ path: 'panic/used', version: 1, current: true }]);
  assert.equal((await suspect.get('/api/v1/credentials/panic/seen')).status, 401);
  assert.equal((await other.get('/api/v1/credentials/panic/seen')).status, 200);
  const statusOf = async (id: string) => dataOf(await admin.get(`/api/v1/leases/${id}`)).status;
  assert.deepEqual([await statusOf(seen.lease_id), await statusOf(kept.lease_id)], ['revoked', 'active']);
  const [entry] = dataOf(await admin.get('/api/v1/audit?event_type=agent.panic&order=desc&limit=1'));
  assert.deepEqual([entry.resource, entry.result, entry.agent_name], ['agent:suspect', 'allowed', 'admin']);
  const again = dataOf(await admin.post('/api/v1/panic', { agent: 'suspect' }));
  assert.deepEqual([again.leases, again.sessions], [0, 0]);
  assert.equal((await admin.post('/api/v1/panic', { agent: 'nobody' })).status, 404);
});

test('a panic about all ends everything, and a new login works', async () => {
  await store('all/key');
  const agents = await Promise.all(['all-1', 'all-2'].map((name) => service.agent(name, { 'all/*': ['retrieve'] })));
  for (const agent of [...agents, admin]) assert.equal((await agent.get('/api/v1/credentials/all/key')).status, 200);
  const held = dataOf(await admin.get('/api/v1/panic'));
  const { leases, sessions, rotate } = dataOf(await admin.post('/api/v1/panic', {}));
  assert.deepEqual([held.leases, held.sessions], [leases, sessions]);
  assert.ok(leases >= 3 && sessions >= 2, `${leases} leases, ${sessions} sessions`);
  assert.ok(rotate.some((each: { path: string }) => each.path === 'all/key'));
  for (const agent of agents) assert.equal((await agent.get('/api/v1/credentials/all/key')).status, 401);
  assert.deepEqual(dataOf(await admin.get('/api/v1/leases?status=active')), []);
  const renewed = await service.agent('all-3', { 'all/*': ['retrieve'] });
  assert.equal((await renewed.get('/api/v1/credentials/all/key')).status, 200);
  const [entry] = dataOf(await admin.get('/api/v1/audit?event_type=service.panic&result=allowed&order=desc&limit=1'));
  assert.deepEqual([entry.resource, entry.agent_name], ['*', 'admin']);
  assert.equal(dataOf(await admin.get('/api/v1/audit/verify')).valid, true);
});
