// The token of a use lease where it does not belong: rejected, sent nowhere, and recorded once if it was issued.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { after, beforeEach, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import type { Client } from '../kit/client.ts';
import { executeSql } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { address, admin } = service;
const upstream = await startUpstream({ after }, (_request, response) => response.end('reached'));
const agent = await service.agent('agent', { 'api/*': ['use', 'list'] });
const other = await service.agent('other', { 'api/*': ['use'] });
await storeWithTargets(service, 'api/key', upstream, { paths: ['/v1/*'] });
await storeWithTargets(service, 'api/second', upstream);
await storeWithTargets(service, 'api/query', upstream, { placement: { kind: 'query', name: 'key' } });
await storeWithTargets(service, 'mail/key', upstream, { service: 'sendgrid' });

interface Issued {
  readonly lease_id: string;
  readonly token: string;
}

async function issue(holder: Client = agent, path = 'api/key'): Promise<Issued> {
  const issued = await holder.post('/api/v1/leases/use', { path, ttl: 60 });
  assert.equal(issued.status, 201, issued.text);
  return issued.body.data;
}

const held = await issue();
const { token } = held;
const INVENTED = `lhu_${'a'.repeat(43)}`;
const bearer = (text: string) => ({ authorization: `Bearer ${text}` });

const misuses = async () => (await admin.get('/api/v1/audit?event_type=credential.misuse&order=asc')).body.data;
const uses = async (): Promise<number> => (await admin.get('/api/v1/audit?event_type=credential.use')).body.meta.total;

let known = 0;
let sent = 0;
let used = 0;
beforeEach(async () => {
  known = (await misuses()).length;
  sent = upstream.requests.length;
  used = await uses();
});

/** The only new entry; asserts that it has no token, that no use was recorded, and that nothing was sent. */
async function theEntry() {
  const [entry, ...others] = (await misuses()).slice(known);
  assert.deepEqual(others, []);
  assert.ok(entry);
  assert.equal(/lh[su]_[A-Za-z0-9_-]{43}/.test(JSON.stringify(entry)), false);
  assert.equal(upstream.requests.length, sent);
  assert.equal(await uses(), used);
  const { agent_name, resource, result, lease_id, method, host, target_path, reason } = entry;
  return { agent_name, resource, result, lease_id, method, host, target_path, reason };
}

const OWN = { agent_name: 'agent', resource: 'api/key', result: 'denied', lease_id: held.lease_id } as const;

async function atEndpoint(path: string, headers: OutgoingHttpHeaders, method = 'GET') {
  const { response, text } = await exchange(address, `/use/${path}`, headers, { method });
  const body = await text();
  assert.equal(body.includes(token), false);
  return { status: response.statusCode, code: JSON.parse(body).error?.code };
}

async function call(headers: Readonly<Record<string, string>>, rest = '/v1/a', caller: Client = agent) {
  const url = `https://127.0.0.1:${upstream.port}${rest}`;
  const { status, body } = await caller.post('/api/v1/use', { path: 'api/key', method: 'GET', url, headers });
  return { status, code: body.error?.code };
}

test('at the base URL of another credential', async () => {
  const answer = await atEndpoint('api/second/-/v1/a?b=c', bearer(token), 'POST');
  assert.deepEqual(answer, { status: 403, code: 'ACCESS_DENIED' });
  const reason = 'the token was sent to the base URL of api/second';
  assert.deepEqual(await theEntry(), { ...OWN, method: 'POST', host: '127.0.0.1', target_path: '/v1/a', reason });
});

test('at the base URL of a credential that does not exist, or that the agent may not use', async () => {
  for (const path of ['api/missing', 'mail/key']) {
    known = (await misuses()).length;
    assert.equal((await atEndpoint(`${path}/-/v1/a`, bearer(token))).status, 403);
    const { host, reason } = await theEntry();
    assert.equal(reason, `the token was sent to the base URL of ${path}`);
    assert.equal(host, path === 'mail/key' ? '127.0.0.1' : null);
  }
});

test('as a bearer token at any other route that needs one, where it is an unknown token', async () => {
  const holder = service.as(token);
  const routes: readonly [method: 'get' | 'post', path: string, route: string][] = [
    ['get', '/api/v1/credentials', '/api/v1/credentials'],
    ['get', '/api/v1/credentials/api/key', '/api/v1/credentials/*'],
    ['get', `/api/v1/leases/${held.lease_id}`, '/api/v1/leases/:lease_id'],
    ['get', '/api/v1/audit', '/api/v1/audit'],
    ['get', '/auth/session', '/auth/session'],
    ['post', '/api/v1/use', '/api/v1/use'],
    ['post', '/api/v1/leases/use', '/api/v1/leases/use'],
  ];
  for (const [verb, path, route] of routes) {
    known = (await misuses()).length;
    const answer = verb === 'get' ? await holder.get(path) : await holder.post(path, {});
    const invented = verb === 'get' ? await service.as(INVENTED).get(path) : await service.as(INVENTED).post(path, {});
    assert.deepEqual([answer.status, answer.body], [401, invented.body]);
    const reason = `the token was sent to ${route}, which is not a base URL`;
    const entry = await theEntry();
    assert.deepEqual(entry, { ...OWN, method: verb.toUpperCase(), host: null, target_path: null, reason });
  }
});

test('at an address that does not exist, as of a wrong base URL, and at a route that needs no token', async () => {
  const holder = service.as(token);
  for (const [verb, path, status, route] of [
    ['post', '/v1/chat/completions', 404, 'an address'],
    ['post', '/api/v1/audit', 405, 'an address'],
    ['post', '/auth/challenge', 200, '/auth/challenge'],
  ] as const) {
    known = (await misuses()).length;
    const answer = await holder[verb](path, { agent_name: 'agent' });
    assert.equal(answer.status, status, answer.text);
    assert.equal((await service.as(INVENTED)[verb](path, { agent_name: 'agent' })).status, status);
    const reason = `the token was sent to ${route}, which is not a base URL`;
    assert.deepEqual(await theEntry(), { ...OWN, method: 'POST', host: null, target_path: null, reason });
  }
  known = (await misuses()).length;
  assert.equal((await holder.get('/api/v1/health')).status, 200);
  assert.equal((await misuses()).length, known);
});

test('in a part of a request to a base URL that would be forwarded', async () => {
  const encoded = `%6c${token.slice(1)}`;
  const wrong: readonly [place: string, rest: string, headers: OutgoingHttpHeaders][] = [
    ['a header', '/v1/a', { ...bearer(agent.token), 'x-own': `"${token}"` }],
    ['a header', '/v1/a', { ...bearer(token), cookie: `session=${token}` }],
    ['a header', '/v1/a', { ...bearer(token), 'x-own': `x${token}y` }],
    ['a header', '/v1/a', { 'x-own': token }],
    ['the query', `/v1/a?key=${token}`, bearer(agent.token)],
    ['the query', `/v1/a?key=${encoded}`, bearer(agent.token)],
    ['the query', `/v1/a?key=${token}`, {}],
  ];
  for (const [place, rest, headers] of wrong) {
    known = (await misuses()).length;
    assert.deepEqual(await atEndpoint(`api/key/-${rest}`, headers), { status: 403, code: 'ACCESS_DENIED' }, rest);
    const reason = `the token was in ${place} of a request with api/key`;
    assert.deepEqual(await theEntry(), { ...OWN, method: 'GET', host: '127.0.0.1', target_path: '/v1/a', reason });
  }
});

test('in the path, which the entry then leaves out', async () => {
  for (const text of [token, `%6c${token.slice(1)}`]) {
    known = (await misuses()).length;
    assert.equal((await atEndpoint(`api/key/-/v1/${text}/a`, bearer(agent.token))).status, 403);
    const reason = 'the token was in the path of a request with api/key';
    assert.deepEqual(await theEntry(), { ...OWN, method: 'GET', host: '127.0.0.1', target_path: null, reason });
  }
});

test('in the URL or a header of a use as one call', async () => {
  const wrong: readonly [place: string, headers: Readonly<Record<string, string>>, rest?: string][] = [
    ['a header', { authorization: `Bearer ${token}` }],
    ['a header', { 'X-Own': `key=${token};` }],
    ['a header', { [token]: 'x' }],
    ['the query', {}, `/v1/a?key=${token}`],
    ['the query', {}, `/v1/a?key=%6C${token.slice(1)}`],
  ];
  for (const [place, headers, rest] of wrong) {
    known = (await misuses()).length;
    assert.deepEqual(await call(headers, rest), { status: 403, code: 'ACCESS_DENIED' });
    const reason = `the token was in ${place} of a request with api/key`;
    assert.deepEqual(await theEntry(), { ...OWN, method: 'GET', host: '127.0.0.1', target_path: '/v1/a', reason });
  }
  known = (await misuses()).length;
  const alone = { path: 'api/key', method: 'GET', url: `/v1/${token}` };
  assert.equal((await agent.post('/api/v1/use', alone)).status, 403);
  assert.equal((await theEntry()).host, '127.0.0.1');
  known = (await misuses()).length;
  assert.equal((await call({}, `/v1/${token}`)).status, 403);
  assert.equal((await theEntry()).target_path, null);
});

test('the entry names the caller, and the lease of the token', async () => {
  const theirs = await issue(other);
  assert.equal((await call({ 'x-own': theirs.token })).status, 403);
  assert.deepEqual(await theEntry(), {
    ...OWN,
    lease_id: theirs.lease_id,
    method: 'GET',
    host: '127.0.0.1',
    target_path: '/v1/a',
    reason: 'the token was in a header of a request with api/key',
  });
  known = (await misuses()).length;
  assert.equal((await call({ 'x-own': theirs.token }, '/v1/a', admin)).status, 403);
  assert.equal((await theEntry()).agent_name, 'admin');
});

test('a token with the prefix that an SDK checks', async () => {
  const sender = await service.agent('sender', { 'mail/*': ['use'] });
  const own = await issue(sender, 'mail/key');
  assert.match(own.token, /^SG\.lhu_/);
  assert.equal((await service.as(own.token).get('/api/v1/credentials')).status, 401);
  assert.equal((await theEntry()).lease_id, own.lease_id);
  known = (await misuses()).length;
  assert.equal((await call({ 'x-own': `key ${own.token}` })).status, 403);
  assert.equal((await theEntry()).lease_id, own.lease_id);
});

test('an invented token is rejected and not recorded', async () => {
  const forged = `${token.slice(0, -8)}${token.endsWith('AAAAAAAA') ? 'BBBBBBBB' : 'AAAAAAAA'}`;
  const sessionShaped = `lhs_${'a'.repeat(43)}`;
  for (const text of [INVENTED, forged, sessionShaped]) {
    assert.equal((await service.as(text).get('/api/v1/credentials')).status, 401);
    assert.equal((await atEndpoint('api/second/-/v1/a', bearer(text))).status, 401);
    assert.equal((await atEndpoint('api/key/-/v1/a', { ...bearer(agent.token), 'x-own': text })).status, 400);
    assert.equal((await atEndpoint(`api/key/-/v1/a?key=${text}`, bearer(agent.token))).status, 400);
    assert.deepEqual(await call({ 'x-own': text }), { status: 400, code: 'INVALID_REQUEST' });
    assert.deepEqual(await call({}, `/v1/${text}`), { status: 400, code: 'INVALID_REQUEST' });
  }
  assert.equal((await misuses()).length, known);
  assert.equal(upstream.requests.length, sent);
});

test('a token that only an edit of the database made known is not recorded', async () => {
  const { lease_id } = await issue();
  const hash = createHash('sha256').update(INVENTED).digest('base64');
  await executeSql(service.dataDir, `UPDATE leases SET token_hash = '${hash}' WHERE id = '${lease_id}'`);
  assert.equal((await service.as(INVENTED).get('/api/v1/credentials')).status, 401);
  assert.equal((await atEndpoint('api/second/-/v1/a', bearer(INVENTED))).status, 401);
  assert.deepEqual(await call({ 'x-own': INVENTED }), { status: 400, code: 'INVALID_REQUEST' });
  assert.equal((await misuses()).length, known);
});

test('the token of a lease that was revoked or has expired', async () => {
  const revoked = await issue();
  assert.equal((await agent.delete(`/api/v1/leases/${revoked.lease_id}`)).status, 204);
  const expired = await issue();
  await clock.move(600_000);
  for (const { token: old, lease_id } of [revoked, expired]) {
    for (const present of [
      () => atEndpoint('api/second/-/v1/a', bearer(old)),
      () => atEndpoint('api/key/-/v1/a', { ...bearer(agent.token), 'x-own': old }),
      () => call({ 'x-own': old }),
      () => service.as(old).get('/api/v1/leases'),
    ]) {
      known = (await misuses()).length;
      assert.ok([401, 403].includes((await present()).status ?? 0));
      assert.equal((await theEntry()).lease_id, lease_id);
    }
    known = (await misuses()).length;
    assert.deepEqual(await atEndpoint('api/key/-/v1/a', bearer(old)), { status: 409, code: 'LEASE_ENDED' });
    assert.equal((await misuses()).length, known);
  }
});

test('the token of an agent that was deregistered', async () => {
  const former = await service.agent('former', { 'api/*': ['use'] });
  const { token: old, lease_id } = await issue(former);
  assert.equal((await admin.delete('/api/v1/agents/former')).status, 204);
  assert.equal((await service.as(old).get('/api/v1/leases')).status, 401);
  const { agent_name, lease_id: recorded } = await theEntry();
  assert.deepEqual([agent_name, recorded], ['former', lease_id]);
});

test('misuses beyond the budget of denials get the same response and are not recorded', async (t) => {
  const small = await startTestService(t, ['--denials-per-minute', '3']);
  const flooding = await small.agent('flooding', { 'api/*': ['use'] });
  await storeWithTargets(small, 'api/key', upstream);
  const lease = (await flooding.post('/api/v1/leases/use', { path: 'api/key' })).body.data;
  for (let i = 0; i < 20; i++) assert.equal((await small.as(lease.token).get('/api/v1/leases')).status, 401);
  const listed = await small.admin.get('/api/v1/audit?event_type=credential.misuse');
  assert.equal(listed.body.meta.total, 3);
});
