// Base URLs: the forwarded request, the returned response, and the authentication of callers. SOURCE: docs/api.md,
// "Base URL".

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { UUID } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets, targetOf, VALUE } from '../kit/use.ts';

const service = await startTestService({ after });
const { address, admin } = service;
const upstream = await startUpstream({ after }, (request, response) => void reply(request, response));
async function reply(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = Buffer.concat(await request.toArray()).toString('utf8');
  const { method, url, headers } = request;
  response.setHeader('x-request-id', 'of-the-upstream');
  response.setHeader('cache-control', 'max-age=60');
  response.setHeader('set-cookie', ['a=1', 'b=2']);
  if (url?.startsWith('/v1/moved') === true) {
    response.setHeader('link', `<https://127.0.0.1:${upstream.port}/v1/next?page=2>; rel="next"`);
    response.writeHead(302, { location: '/v1/there' }).end();
    return;
  }
  response.statusCode = url === '/v1/missing' ? 404 : 200;
  response.end(JSON.stringify({ method, url, headers, body }));
}
const other = await startUpstream({ after }, (_request, response) => response.end('"the other host"'));
const agent = await service.agent('agent', { 'api/*': ['use'] });
const bearer = { authorization: `Bearer ${agent.token}` };
await storeWithTargets(service, 'api/key', upstream, { paths: ['/v1/*'] });

/** What the upstream has seen. */
async function seen(path: string, headers = {}, init: Parameters<typeof exchange>[3] = {}) {
  const { response, text } = await exchange(address, path, headers, init);
  const body = await text();
  assert.equal(response.statusCode, 200, body);
  return JSON.parse(body);
}

/** The error of ours. */
async function rejected(path: string, headers = {}, init: Parameters<typeof exchange>[3] = {}) {
  const { response, text } = await exchange(address, path, headers, init);
  const body = await text();
  const { error } = JSON.parse(body);
  assert.equal(response.headers['x-leasehold-error'], '1', body);
  assert.equal(response.headers['x-leasehold-request'], response.headers['x-request-id']);
  assert.equal(response.headers['cache-control'], 'no-store');
  return { status: response.statusCode, code: error.code, message: error.message };
}

async function useLease(path = 'api/key', ttl = 60) {
  const issued = await agent.post('/api/v1/leases/use', { path, ttl, purpose: 'weekly report' });
  assert.equal(issued.status, 201, issued.text);
  return issued.body.data;
}

test('a request goes to the target with the credential, and its path and query as they were sent', async () => {
  const path = '/v1/a%2Fb;c=%C3%A9%20/(d)?q=%FF&r=a+b&empty=&&s';
  const headers = { ...bearer, cookie: 'a=b', 'x-forwarded-for': '10.0.0.1', accept: 'text/plain', 'x-own': '1' };
  const got = await seen(`/use/api/key/-${path}`, headers);
  assert.equal(got.url, path);
  assert.match(got.headers.authorization, /^Bearer \[.*\]$/);
  assert.equal(upstream.requests.at(-1)?.headers.authorization, `Bearer ${VALUE}`);
  const { host, accept, cookie } = got.headers;
  assert.deepEqual([host, accept, cookie], [`127.0.0.1:${upstream.port}`, 'text/plain', undefined]);
  assert.deepEqual([got.headers['x-forwarded-for'], got.headers['x-own']], [undefined, '1']);
});

/** The two entries of the newest use, the later first. The result follows the response. */
async function newestUse() {
  for (;;) {
    const { body } = await admin.get('/api/v1/audit?limit=2&order=desc');
    if (body.data[0].event_type === 'credential.use_result') return body.data;
  }
}

test("the response is the upstream's, with the lease and the request of ours", async () => {
  const { response, text } = await exchange(address, '/use/api/key/-/v1/missing', bearer);
  await text();
  const { headers } = response;
  assert.equal(response.statusCode, 404);
  assert.deepEqual([headers['x-request-id'], headers['x-leasehold-error']], ['of-the-upstream', undefined]);
  const lease = String(headers['x-leasehold-lease']);
  assert.match(lease, UUID);
  const [result, intent] = await newestUse();
  assert.deepEqual(
    [intent.event_type, intent.host, intent.target_path],
    ['credential.use', '127.0.0.1', '/v1/missing'],
  );
  assert.deepEqual([intent.lease_id, intent.request_id], [lease, headers['x-leasehold-request']]);
  assert.deepEqual([result.id, result.status, result.ended], [intent.id, 404, 'complete']);
});

test('all methods of the target pass, with their bodies', async () => {
  const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY', 'SEARCH'];
  await storeWithTargets(service, 'api/methods', upstream, { methods: [...methods, 'HEAD'] });
  for (const method of methods) {
    const headers = { ...bearer, 'content-type': 'not a media type', 'content-length': 5 };
    const got = await seen('/use/api/methods/-/v1/a', headers, { method, body: 'hello' });
    assert.deepEqual([got.method, got.body, got.headers['content-type']], [method, 'hello', 'not a media type']);
  }
  const chunked = { ...bearer, 'transfer-encoding': 'chunked' };
  const got = await seen('/use/api/methods/-/v1/a', chunked, { method: 'POST', body: 'in chunks' });
  assert.deepEqual([got.body, got.headers['transfer-encoding']], ['in chunks', 'chunked']);
  const head = await exchange(address, '/use/api/methods/-/v1/a', bearer, { method: 'HEAD' });
  assert.deepEqual([head.response.statusCode, await head.text()], [200, '']);
  assert.equal(upstream.requests.at(-1)?.method, 'HEAD');
  assert.equal((await rejected('/use/api/key/-/v1/a', bearer, { method: 'OPTIONS' })).code, 'ACCESS_DENIED');
  assert.equal((await rejected('/use/api/key/-/v1/a', bearer, { method: 'TRACE' })).code, 'NOT_FOUND');
});

test('redirects and links to the target come back as the base URL', async () => {
  const { response, text } = await exchange(address, '/use/api/key/-/v1/moved', bearer);
  await text();
  assert.equal(response.statusCode, 302);
  assert.equal(response.headers.location, `${address}/use/api/key/-/v1/there`);
  assert.equal(response.headers['link'], `<${address}/use/api/key/-/v1/next?page=2>; rel="next"`);
});

test('a number chooses the target, and links keep it', async () => {
  const targets = [targetOf(other, { paths: ['/other/*'] }), targetOf(upstream)];
  await storeWithTargets(service, 'api/two', targets);
  const first = await exchange(address, '/use/api/two/-/other/a', bearer);
  assert.equal(await first.text(), '"the other host"');
  assert.equal((await seen('/use/api/two/-/v1/a', bearer)).url, '/v1/a');
  assert.equal((await seen('/use/api/two/-2/other/a', bearer)).url, '/other/a');
  assert.equal((await rejected('/use/api/two/-1/v1/a', bearer)).code, 'ACCESS_DENIED');
  for (const number of [0, 3, 999]) {
    assert.equal((await rejected(`/use/api/two/-${number}/v1/a`, bearer)).status, 403);
  }
  const moved = await exchange(address, '/use/api/two/-/v1/moved', bearer);
  assert.equal(moved.response.headers.location, `${address}/use/api/two/-2/v1/there`);
});

test('a target with a wildcard host is rejected with the reason', async () => {
  await storeWithTargets(service, 'api/wild', [{ origin: 'https://*.example.com', paths: ['/v1/*'] }]);
  for (const selector of ['-', '-1']) {
    const { code, message } = await rejected(`/use/api/wild/${selector}/v1/a`, bearer);
    assert.equal(code, 'ACCESS_DENIED');
    assert.match(message, /wildcard host needs the whole URL/);
  }
});

test('an unknown credential or target is denied, and the denial is recorded', async () => {
  const paths = ['api/absent', 'secret/absent', 'secret/key', 'api/bare'];
  await admin.post('/api/v1/credentials', { path: 'api/bare', value: VALUE });
  await admin.post('/api/v1/credentials', { path: 'secret/key', value: VALUE });
  for (const path of paths) {
    const { status, code } = await rejected(`/use/${path}/-/v1/a`, bearer);
    assert.deepEqual([status, code], [403, 'ACCESS_DENIED'], path);
    const [entry] = (await admin.get('/api/v1/audit?limit=1&order=desc')).body.data;
    assert.deepEqual([entry.event_type, entry.resource, entry.method], ['credential.use', path, 'GET']);
  }
  assert.equal((await rejected('/use/api/key/-/v2/a', bearer)).status, 403);
});

test("a token that is unknown, or the administrator's, is rejected", async () => {
  for (const token of [`lhu_${'a'.repeat(43)}`, `lhs_${'a'.repeat(43)}`, 'other', service.adminToken])
    assert.equal((await rejected('/use/api/key/-/v1/a', { authorization: `Bearer ${token}` })).code, 'UNAUTHENTICATED');
  assert.equal((await rejected('/use/api/key/-/v1/a')).code, 'UNAUTHENTICATED');
  const issued = await admin.post('/api/v1/leases/use', { path: 'api/key' });
  assert.equal(issued.status, 403, issued.text);
});

test('a use lease needs a grant, targets, and a path that a base URL can contain', async () => {
  const status = async (path: string) => (await agent.post('/api/v1/leases/use', { path })).status;
  assert.deepEqual([await status('secret/key'), await status('api/bare'), await status('api/absent')], [403, 403, 404]);
  assert.deepEqual([await status('api/-/key'), await status('api/-2')], [400, 400]);
});

test('the variables of the service are in the use lease, and its token has the shape that an SDK checks', async () => {
  await storeWithTargets(service, 'api/openai', upstream, { service: 'openai' });
  const { base_url, token, env } = await useLease('api/openai');
  assert.deepEqual(env, { OPENAI_BASE_URL: `${base_url}/v1`, OPENAI_API_KEY: token });
  await storeWithTargets(service, 'api/sendgrid', upstream, { service: 'sendgrid' });
  const shaped = await useLease('api/sendgrid');
  assert.match(shaped.token, /^SG\.lhu_/);
  const got = await seen('/use/api/sendgrid/-/v3/mail', { authorization: `Bearer ${shaped.token}` });
  assert.equal(got.url, '/v3/mail');
});
