// Credentials. SOURCE: docs/api.md, "Credentials" and "Errors"; docs/decisions.md, "Credentials".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { assertInvalid, assertKeys, assertRejected, dataOf, TIMESTAMP } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';
const LISTED = 'path type description created_at updated_at access_count';

const service = await startTestService({ after });
const { admin } = service;
const store = (path: string, value = 'v', more: Record<string, unknown> = {}) =>
  admin.post(CREDENTIALS, { path, value, ...more });

test('POST /credentials returns 201 with path, type and created_at, without the value', async () => {
  const answer = await store('post/one', 'hidden-in-the-answer', { type: 'api_key', description: 'of the shop' });
  const data = dataOf(answer, 201, 'path type created_at');
  assert.equal(data.path, 'post/one');
  assert.equal(data.type, 'api_key');
  assert.match(data.created_at, TIMESTAMP);
  assert.equal(answer.text.includes('hidden-in-the-answer'), false);
});

test('GET /credentials returns path, type, description, times and access_count, and never a value', async () => {
  await store('list/b', 'listed-value', { type: 'token', description: 'second' });
  await store('list/a', 'listed-value', { type: 'token' });
  const answer = await admin.get(CREDENTIALS);
  const listed = dataOf(answer, 200, LISTED).filter(({ path }: { path: string }) => path.startsWith('list/'));
  assert.deepEqual(
    listed.map(({ path }: { path: string }) => path),
    ['list/a', 'list/b'],
  );
  const { created_at, updated_at, ...rest } = listed[1];
  assert.deepEqual(rest, { path: 'list/b', type: 'token', description: 'second', access_count: 0 });
  assert.match(created_at, TIMESTAMP);
  assert.equal(updated_at, created_at);
  assert.equal(answer.text.includes('listed-value'), false);
});

test('list shows an agent only the paths that it has a list grant for', async () => {
  for (const path of ['shown/a', 'shown/b/c', 'shown', 'hidden/a', 'exact/a', 'exact/ab']) await store(path);
  const agent = await service.agent('lister', { 'shown/*': ['list'], 'hidden/*': ['retrieve'], 'exact/a': ['list'] });
  const listed = dataOf(await agent.get(CREDENTIALS), 200, LISTED);
  const paths = listed.map(({ path }: { path: string }) => path);
  assert.deepEqual(paths, ['exact/a', 'shown/a', 'shown/b/c']);
  const nobody = await service.agent('lister-of-nothing');
  assert.deepEqual(dataOf(await nobody.get(CREDENTIALS), 200, ''), []);
});

test('ttl shortens the lease and is limited by the policy’s max_ttl', async () => {
  await store('ttl/one');
  const agent = await service.agent('hasty');
  const policy = { principal: 'agent:hasty', resources: ['ttl/*'], actions: ['retrieve'], max_ttl: 100 };
  await admin.post('/api/v1/policies', { name: 'hasty', ...policy });
  const secondsFor = async (query: string) => {
    const { lease_id, expires_at } = (await agent.get(`${CREDENTIALS}/ttl/one${query}`)).body.data;
    const { issued_at } = (await agent.get(`/api/v1/leases/${lease_id}`)).body.data;
    return (Date.parse(expires_at) - Date.parse(issued_at)) / 1000;
  };
  assert.equal(await secondsFor(''), 100);
  assert.equal(await secondsFor('?ttl=7'), 7);
  assert.equal(await secondsFor('?ttl=100'), 100);
  assert.equal(await secondsFor('?ttl=101'), 100);
  assert.equal(await secondsFor('?ttl=31536000'), 100);
  for (const ttl of ['0', '-1', '1.5', '1e2', '31536001', 'abc', '', '%201', '0x10']) {
    assertInvalid(await agent.get(`${CREDENTIALS}/ttl/one?ttl=${ttl}`), 'ttl');
  }
});

test('view=metadata returns the list entry plus versions, with no value, lease or access count', async () => {
  await store('view/one', 'first-value', { type: 'token', description: 'd' });
  await store('view/one', 'second-value');
  const leases = (await admin.get('/api/v1/leases')).body.data.length;
  const answer = await admin.get(`${CREDENTIALS}/view/one?view=metadata`);
  const data = dataOf(answer, 200, `${LISTED} versions`);
  assert.equal(data.access_count, 0);
  for (const version of data.versions) assertKeys(version, 'version created_at');
  assert.deepEqual(
    data.versions.map(({ version }: { version: number }) => version),
    [1, 2],
  );
  assert.equal(data.versions[0].created_at, data.created_at);
  assert.equal(data.versions[1].created_at, data.updated_at);
  assert.equal(answer.text.includes('-value'), false);
  assert.equal((await admin.get('/api/v1/leases')).body.data.length, leases);
  assertRejected(await admin.get(`${CREDENTIALS}/view/nothing?view=metadata`), 'NOT_FOUND');
});

test('view must be metadata, and excludes version and ttl', async () => {
  await store('view/three');
  assertInvalid(await admin.get(`${CREDENTIALS}/view/three?view=value`), 'view');
  assertInvalid(await admin.get(`${CREDENTIALS}/view/three?view=metadata&version=1`), 'version');
  assertInvalid(await admin.get(`${CREDENTIALS}/view/three?view=metadata&ttl=5`), 'ttl');
});
