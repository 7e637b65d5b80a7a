// Limits of policies on uses: validated, stored and shown as given, and enforced per agent. SOURCE: docs/api.md,
// "Policies".

import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import type { Client } from '../kit/client.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const { admin } = service;
/** Responses that the test ends. */
const held: ServerResponse[] = [];
const upstream = await startUpstream({ after }, ({ url }, response) => {
  if (url === '/held') held.push(response);
  else response.end('x'.repeat(1000));
});
const origin = `https://127.0.0.1:${upstream.port}`;
const path = 'limited/key';
assert.equal((await admin.post('/api/v1/credentials', { path, value: 'sk-test-0123456789' })).status, 201);
const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem, methods: ['GET', 'POST'] }];
assert.equal((await admin.put(`/api/v1/targets/${path}`, { targets, placement: { kind: 'bearer' } })).status, 200);

/** Agents of one policy with the limits. */
async function agents(policy: string, limits: object, names: readonly string[]): Promise<readonly Client[]> {
  const fields = { principal: `agent:${policy}-*`, resources: ['limited/*'], actions: ['use'], limits };
  assert.equal((await admin.put(`/api/v1/policies/${policy}`, fields)).status, 200);
  return Promise.all(names.map((name) => service.agent(`${policy}-${name}`)));
}

const use = (client: Client | undefined, call: object = {}) =>
  client?.post('/api/v1/use', { path, method: 'GET', url: `${origin}/`, ...call }) ?? assert.fail('no client');

const denials = async (agent: string) =>
  (await admin.get(`/api/v1/audit?agent=${agent}&event_type=credential.use&result=denied`)).body.data;

test('a policy shows its limits only where they were given, also after a restart', async (t) => {
  const other = await startTestService(t);
  const plain = { principal: 'agent:a', resources: ['a'], actions: ['use'], max_ttl: 60 };
  const limits = { uses_per_hour: 100, concurrent: 4 };
  const created = await other.admin.post('/api/v1/policies', { name: 'with', ...plain, limits });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(created.body.data.limits, limits);
  assert.equal((await other.admin.post('/api/v1/policies', { name: 'without', ...plain })).status, 201);
  const changed = { ...limits, bytes_per_hour: 1_000_000_000_000 };
  assert.deepEqual(
    (await other.admin.put('/api/v1/policies/with', { ...plain, limits: changed })).body.data.limits,
    changed,
  );
  await other.stop();

  const again = await startTestService(t, [], other.dataDir);
  assert.deepEqual(
    again.warnings.filter((line) => line.includes('polic')),
    [],
  );
  const [first, second] = (await again.admin.get('/api/v1/policies')).body.data;
  assert.deepEqual(first.limits, changed);
  assert.equal('limits' in second, false);
  assert.equal('limits' in (await again.admin.put('/api/v1/policies/with', plain)).body.data, false);
  assert.equal('limits' in (await again.admin.get('/api/v1/policies/with')).body.data, false);
});

test('uses over the hourly number are 429 with Retry-After, per agent, and recorded once', async () => {
  const [one, two] = await agents('hourly', { uses_per_hour: 2 }, ['one', 'two']);
  assert.equal((await use(one)).status, 200);
  // A denied use is not counted.
  assert.equal((await use(one, { method: 'DELETE' })).status, 403);
  assert.equal((await use(one)).status, 200);
  const before = upstream.requests.length;
  for (let times = 0; times < 3; times++) {
    const answer = await use(one);
    assertRejected(answer, 'RATE_LIMITED');
    assert.equal(answer.body.error.message, 'Over the limit of policy hourly: 2 uses per hour. Try again later.');
    const retryAfter = Number(answer.headers.get('retry-after'));
    assert.ok(retryAfter > 1700 && retryAfter <= 1800, String(retryAfter));
  }
  assert.equal(upstream.requests.length, before);
  const recorded = (await denials('hourly-one')).filter(({ reason }: { reason: string }) => reason.includes('limit'));
  assert.deepEqual(
    recorded.map((entry: Record<string, unknown>) => [entry['resource'], entry['policy_name'], entry['reason']]),
    [[path, 'hourly', "over the policy's limit of 2 uses per hour"]],
  );
  assert.equal((await use(two)).status, 200);
  assert.equal((await use(admin)).status, 200);
  // A changed limit begins again.
  await agents('hourly', { uses_per_hour: 3 }, []);
  assert.equal((await use(one)).status, 200);
});

test('bytes of both directions count when the response has ended', async () => {
  const [one] = await agents('bytes', { bytes_per_hour: 2500 }, ['one']);
  assert.equal((await use(one)).status, 200);
  assert.equal((await use(one, { method: 'POST', body: 'y'.repeat(600) })).status, 200);
  // 2,600 bytes.
  const answer = await use(one);
  assertRejected(answer, 'RATE_LIMITED');
  assert.match(answer.body.error.message, /2500 bytes per hour/);
  // 101 bytes are earned in 146 seconds.
  const retryAfter = Number(answer.headers.get('retry-after'));
  assert.ok(retryAfter > 60 && retryAfter <= 146, String(retryAfter));
});

test('a use over the number of concurrent ones is 429 until one ends', async () => {
  const [one, two] = await agents('concurrent', { concurrent: 1 }, ['one', 'two']);
  const arrived = upstream.requests.length + 2;
  const running = [use(one, { url: `${origin}/held` }), use(two, { url: `${origin}/held` })];
  while (upstream.requests.length < arrived) await new Promise((resolve) => setImmediate(resolve));
  const answer = await use(one);
  assertRejected(answer, 'RATE_LIMITED');
  assert.equal(answer.headers.get('retry-after'), '1');
  assert.match(answer.body.error.message, /1 concurrent uses/);
  for (const response of held.splice(0)) response.end();
  for (const each of await Promise.all(running)) assert.equal(each.status, 200);
  assert.equal((await use(one)).status, 200);
});
