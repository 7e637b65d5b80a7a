// Targets of a credential: the catalogue fills the omitted fields of a request, and endpoints that return other secrets
// are denied. SOURCE: docs/api.md, "Targets".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const service = await startTestService({ after });
const { admin } = service;
const upstream = await startUpstream({ after }, (_request, response) => response.end('{}'));
const origin = `https://127.0.0.1:${upstream.port}`;
const LOCAL = { origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem };

let made = 0;

/** A new credential, with its path. */
async function store(value = 'sk-test-0123456789'): Promise<string> {
  made += 1;
  const path = `targets/${made}`;
  assert.equal((await admin.post('/api/v1/credentials', { path, value })).status, 201);
  return path;
}

const put = async (path: string, body: object) => admin.put(`/api/v1/targets/${path}`, body);

test('a service that is not supported or does not exist is an error, and so are missing fields', async () => {
  const path = await store();
  for (const [body, message] of [
    [{ service: 'aws' }, /^service: is not supported: AWS/],
    [
      { service: 'aws', targets: [{ origin: 'https://sts.amazonaws.com' }], placement: { kind: 'bearer' } },
      /^service: is not/,
    ],
    [{ service: 'no-such' }, /^service: must be/],
    [{ placement: { kind: 'bearer' } }, /^targets: is required without service/],
    [{ targets: [{ origin: 'https://api.example.com' }] }, /^placement: is required without service/],
  ] as const) {
    const answer = await put(path, body);
    assertRejected(answer, 'INVALID_REQUEST');
    assert.match(answer.body.error.message, message);
  }
  assert.equal((await admin.get(`/api/v1/targets/${path}`)).status, 404);
});

test('the catalogue is listed for every caller with a token', async () => {
  const agent = await service.agent('reader');
  const { data } = (await agent.get('/api/v1/services')).body;
  assert.equal(data.length, 25);
  const aws = data.find(({ name }: { name: string }) => name === 'aws');
  assert.match(aws.unsupported, /signed/);
  const github = data.find(({ name }: { name: string }) => name === 'github');
  assert.equal(github.denied[0], 'POST /app/installations/*/access_tokens');
  assert.deepEqual(github.targets[1].paths, ['/repos/*']);
  assert.deepEqual(aws.targets, []);
  assert.equal((await service.anonymous.get('/api/v1/services')).status, 401);
});

test('a request to an endpoint that returns another secret is denied, also below a prefix of another host', async () => {
  const path = await store();
  assert.equal((await put(path, { service: 'github', targets: [LOCAL] })).status, 200);
  const agent = await service.agent('minting', { 'targets/*': ['use'] });
  const use = async (method: string, rest: string) =>
    agent.post('/api/v1/use', { path, method, url: origin + rest, ...(method === 'POST' ? { body: '{}' } : {}) });
  for (const rest of ['/app/installations/1/access_tokens', '/api/v3/app/installations/1/access_tokens']) {
    const answer = await use('POST', rest);
    assertRejected(answer, 'ACCESS_DENIED');
    assert.match(answer.body.error.message, /may return another secret of github/);
    const [entry] = (await admin.get('/api/v1/audit?limit=1')).body.data;
    assert.deepEqual([entry.event_type, entry.result, entry.target_path], ['credential.use', 'denied', rest]);
    assert.match(entry.reason, /another secret/);
  }
  assert.equal(upstream.requests.length, 0);
  assert.equal((await use('POST', '/repos/a/b/issues')).status, 200);
});

test('a value over 4 KiB gets no targets, and replaces none that has some, but can be stored and retrieved', async () => {
  const [most, more] = ['x'.repeat(4096), 'x'.repeat(4097)];
  const body = { targets: [LOCAL], placement: { kind: 'bearer' } };
  const large = await store(more);
  const rejected = await put(large, body);
  assertRejected(rejected, 'INVALID_REQUEST');
  assert.match(rejected.body.error.message, /over 4096 bytes.*can be retrieved/);
  assert.equal((await admin.get(`/api/v1/credentials/${large}`)).body.data.value, more);
  const path = await store(most);
  assert.equal((await put(path, body)).status, 200);
  assertRejected(await admin.post('/api/v1/credentials', { path, value: more }), 'INVALID_REQUEST');
  assert.equal((await admin.get(`/api/v1/credentials/${path}`)).body.data.value, most);
});

test('a value that is too short to be redacted is not used', async () => {
  const agent = await service.agent('short', { 'targets/*': ['use'] });
  const before = upstream.requests.length;
  for (const [value, placement, status] of [
    ['abc', { kind: 'bearer' }, 403],
    ['a\r\nbc', { kind: 'query', name: 'key' }, 403],
    ['long-user:abc', { kind: 'basic' }, 403],
    ['abcd', { kind: 'bearer' }, 200],
    ['äb\u0301', { kind: 'query', name: 'key' }, 200],
  ] as const) {
    const path = await store(value);
    assert.equal((await put(path, { targets: [LOCAL], placement })).status, 200);
    const answer = await agent.post('/api/v1/use', { path, method: 'GET', url: `${origin}/` });
    assert.equal(answer.status, status, `${value}: ${answer.text}`);
    if (status !== 403) continue;
    assert.match(answer.body.error.message, /too short to be redacted/);
    const [entry] = (await admin.get('/api/v1/audit?limit=1')).body.data;
    assert.deepEqual([entry.event_type, entry.result, entry.lease_id], ['credential.use', 'denied', null]);
  }
  assert.equal(upstream.requests.length, before + 2);
});

test('a denial names the nearest target only to callers who may list', async () => {
  const path = await store();
  await put(path, { targets: [{ ...LOCAL, paths: ['/v1/*'] }], placement: { kind: 'bearer' } });
  const call = { path, method: 'GET', url: `${origin}/v2/a` };
  const blind = await service.agent('blind', { 'targets/*': ['use'] });
  const message = 'Access denied: no target of the credential has this path';
  assert.equal((await blind.post('/api/v1/use', call)).body.error.message, `${message}.`);
  const seeing = await service.agent('seeing', { 'targets/*': ['use', 'list'] });
  const { text } = await seeing.post('/api/v1/use', call);
  assert.ok(text.includes(`${message}; the nearest is ${origin} with GET, HEAD`), text);
});

test('a simulation of a use with a request decides by the targets too', async () => {
  const path = await store();
  const agent = await service.agent('asking', { 'targets/*': ['use'] });
  const simulate = async (method: string, url: string, who = admin, resource = path) => {
    const body = { agent: 'asking', resource, action: 'use', request: { method, url } };
    const answer = await who.post('/api/v1/policies/simulate', body);
    assert.equal(answer.status, 200, answer.text);
    return answer.body.data;
  };
  const none = await simulate('GET', `${origin}/v1/a`);
  assert.match(none.reason, / But the credential has no targets, or does not exist\.$/);
  const absent = await simulate('GET', `${origin}/v1/a`, admin, 'targets/absent');
  assert.match(absent.reason, / But the credential does not exist\.$/);
  // An agent that may not list does not learn that.
  const blind = await simulate('GET', `${origin}/v1/a`, agent, 'targets/absent');
  assert.match(blind.reason, / But the credential has no targets, or does not exist\.$/);
  await put(path, { service: 'github', targets: [{ ...LOCAL, paths: ['/v1/*', '/user/*'] }] });
  const allowed = await simulate('GET', `${origin}/v1/a?b=c`);
  assert.deepEqual([allowed.allowed, allowed.policy_name, allowed.lease_ttl], [true, 'asking-0', 300]);

  const denied = await simulate('GET', `${origin}/v2/a`);
  assert.deepEqual([denied.allowed, denied.policy_name, denied.lease_ttl], [false, null, null]);
  const start = 'Policy asking-0 grants use on targets/*; it is the most restrictive policy that matches. But';
  const lack = `${start} no target of the credential has this path`;
  const methods = 'GET, HEAD, POST, PUT, PATCH, DELETE';
  assert.equal(denied.reason, `${lack}; the nearest is ${origin} with ${methods} on /v1/*, /user/*.`);
  assert.equal((await simulate('GET', `${origin}/v2/a`, agent)).reason, `${lack}.`);
  assert.match((await simulate('POST', `${origin}/user/keys`)).reason, / But the endpoint may return another secret/);

  // What is simulated is what happens.
  for (const [method, rest] of [
    ['GET', '/v1/a'],
    ['GET', '/v2/a'],
    ['OPTIONS', '/v1/a'],
    ['POST', '/user/keys'],
  ] as const) {
    const { allowed: isAllowed } = await simulate(method, origin + rest, agent);
    const used = await agent.post('/api/v1/use', { path, method, url: origin + rest });
    assert.equal(used.status, isAllowed ? 200 : 403, rest);
  }
});

test('a request in a simulation must be one of a use, and valid', async () => {
  const body = { agent: 'asking', resource: 'targets/1', action: 'use' };
  for (const [fields, message] of [
    [{ action: 'list', request: { method: 'GET', url: 'https://a.example/' } }, /^request: is only for the action use/],
    [{ request: { method: 'CONNECT', url: 'https://a.example/' } }, /^request\.method: /],
    [{ request: { method: 'GET', url: 'https://a.example/../b' } }, /^request\.url: /],
  ] as const) {
    const answer = await admin.post('/api/v1/policies/simulate', { ...body, ...fields });
    assertRejected(answer, 'INVALID_REQUEST');
    assert.match(answer.body.error.message, message);
  }
});
