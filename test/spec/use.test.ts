// Brokered use: a request is made with a credential that the agent never sees. SOURCE: docs/api.md, "Brokered use".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { startTestService } from '../kit/service.ts';

const VALUE = 'sk-test-0123456789abcdefghijklmnop';
const service = await startTestService({ after });
const upstream = await startUpstream({ after }, (request, response) => {
  response.setHeader('content-type', 'application/json');
  response.statusCode = request.url === '/v1/missing' ? 404 : 200;
  response.end(
    JSON.stringify({ url: request.url, seen: request.headers.authorization, cookie: request.headers.cookie }),
  );
});
const origin = `https://127.0.0.1:${upstream.port}`;
const targets = [{ origin, paths: ['/v1/*'], allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
const { admin } = service;

/** A credential at the path, with targets. */
async function withTargets(path: string): Promise<void> {
  assert.equal((await admin.post('/api/v1/credentials', { path, value: VALUE })).status, 201);
  const put = await admin.put(`/api/v1/targets/${path}`, { targets, placement: { kind: 'bearer' } });
  assert.equal(put.status, 200, put.text);
}

const dataOf = ({ text }: { text: string }) => JSON.parse(text).data;

test('the value goes to the upstream, and comes back as a mask', async () => {
  await withTargets('openai/key');
  const agent = await service.agent('user', { 'openai/*': ['use'] });
  const answer = await agent.post('/api/v1/use', {
    path: 'openai/key',
    method: 'GET',
    url: `${origin}/v1/models?limit=2`,
    headers: { authorization: 'Bearer of-the-agent', cookie: 'a=b', accept: 'application/json' },
    purpose: 'weekly report',
  });
  assert.equal(answer.status, 200, answer.text);
  const { lease_id, status, body, body_encoding, redactions, truncated } = dataOf(answer);
  assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${VALUE}`);
  assert.deepEqual([status, body_encoding, redactions, truncated], [200, 'utf8', 1, false]);
  assert.equal(answer.text.includes(VALUE), false);
  const { seen, cookie, url } = JSON.parse(body);
  assert.match(seen, /^Bearer \[.*\]$/);
  assert.deepEqual([cookie, url], [undefined, '/v1/models?limit=2']);
  const log = dataOf(await admin.get('/api/v1/audit?limit=2&order=desc'));
  const [result, intent] = log;
  assert.deepEqual(
    [intent.event_type, intent.method, intent.host, intent.target_path, intent.reason, intent.lease_id],
    ['credential.use', 'GET', '127.0.0.1', '/v1/models', 'purpose: "weekly report"', lease_id],
  );
  assert.deepEqual(
    [result.event_type, result.id, result.status, result.redactions, result.ended, result.bytes_in],
    ['credential.use_result', intent.id, 200, 1, 'complete', 0],
  );
  const lease = dataOf(await admin.get(`/api/v1/leases/${lease_id}`));
  assert.equal(lease.status, 'revoked');
  assert.equal(dataOf(await admin.get('/api/v1/audit/verify')).valid, true);
});

test('an upstream that is not reached is 502, with the class of the failure', async () => {
  await withTargets('openai/closed');
  const closed = [{ origin: 'https://127.0.0.1:1', allow_networks: ['127.0.0.0/8'] }];
  await admin.put('/api/v1/targets/openai/closed', { targets: closed, placement: { kind: 'bearer' } });
  const agent = await service.agent('lonely', { 'openai/*': ['use'] });
  const call = { path: 'openai/closed', method: 'GET', url: 'https://127.0.0.1:1/' };
  const answer = await agent.post('/api/v1/use', call);
  assert.equal(answer.status, 502, answer.text);
  assert.deepEqual(JSON.parse(answer.text).error, {
    code: 'UPSTREAM_FAILED',
    message: 'The upstream could not be used: connect.',
  });
});

test('a client that disconnects cuts the use', async () => {
  const arrived = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const silent = await startUpstream({ after }, (request, response) => {
    response.on('close', () => gone.resolve());
    request.resume();
    arrived.resolve();
  });
  await withTargets('openai/silent');
  const url = `https://127.0.0.1:${silent.port}/`;
  const slow = [{ origin: url.slice(0, -1), allow_networks: ['127.0.0.0/8'], ca_pem: silent.caPem }];
  await admin.put('/api/v1/targets/openai/silent', { targets: slow, placement: { kind: 'bearer' } });
  const { token } = await service.agent('impatient', { 'openai/*': ['use'] });
  const stop = new AbortController();
  const answer = fetch(`${service.address}/api/v1/use`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ path: 'openai/silent', method: 'GET', url }),
    signal: stop.signal,
  });
  await arrived.promise;
  stop.abort();
  await assert.rejects(answer);
  await gone.promise;
});
