// The session of a browser, whose token comes as a cookie and a header, and codes that hand a session over.
// SOURCE: docs/decisions.md, "Agents and sessions"; docs/api.md, "Signing in to the console".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { TestResponse } from '../kit/client.ts';
import { addOperator } from '../kit/operators.ts';
import { assertInvalid, assertRejected, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, sessionHeaders } from '../kit/sign-in.ts';

const SESSION = '/api/v1/auth/session';
const FIELDS = 'agent_name expires_at expires_in session_part';
const SAME = { 'sec-fetch-site': 'same-origin' };
const service = await startTestService({ after });
const { admin, anonymous } = service;
const agent = await service.agent('ci');

let made = 0;
const newOperator = () => addOperator(service, `person-${++made}`, ['viewer']);
const open = async () => {
  const operator = await newOperator();
  const opened = await operator.post(`${AUTH}/browser`);
  return { operator, opened, headers: { ...SAME, ...sessionHeaders(opened) } };
};
const read = (headers: Record<string, string>): Promise<TestResponse> =>
  anonymous.call('GET', SESSION, undefined, headers);

test('the token of a session is split into a cookie that no page reads and a part that opens nothing alone', async () => {
  const { operator, opened, headers } = await open();
  const { session_part } = dataOf(opened, 200, FIELDS);
  const cookie = opened.headers.get('set-cookie') ?? '';
  assert.match(cookie, /^leasehold=lhs_[\w-]{22}; Path=\/api\/v1; HttpOnly; SameSite=Strict$/);
  assert.equal(opened.headers.get('cache-control'), 'no-store');
  assert.equal(headers.cookie.slice('leasehold='.length) + session_part, operator.token);
  assert.equal(session_part.length, 21);
  const session = await read(headers);
  assert.deepEqual(dataOf(session, 200, 'agent_name expires_at expires_in roles ends_at').roles, ['viewer']);
  assert.equal((await anonymous.call('GET', '/api/v1/agents', undefined, headers)).status, 200);
  assertRejected(await anonymous.call('POST', '/api/v1/agents', { name: 'x' }, headers), 'ACCESS_DENIED');
});

test('a cookie has no meaning without the part, from another site or port, or with Authorization', async () => {
  const { headers } = await open();
  const { cookie, 'x-leasehold-session-part': part } = headers;
  const other = await open();
  const wrong: Record<string, string>[] = [
    { cookie, 'x-leasehold-session-part': part },
    { ...headers, 'sec-fetch-site': 'cross-site' },
    { ...headers, 'sec-fetch-site': 'same-site' },
    { ...headers, 'sec-fetch-site': 'none' },
    { ...headers, 'sec-fetch-site': 'Same-Origin' },
    { ...SAME, cookie },
    { ...SAME, 'x-leasehold-session-part': part },
    { ...headers, 'x-leasehold-session-part': other.headers['x-leasehold-session-part'] },
    { ...headers, 'x-leasehold-session-part': '' },
    { ...headers, 'x-leasehold-session-part': `${part}, ${part}` },
    { ...headers, cookie: `__Secure-${cookie}` },
    { ...headers, cookie: `x${cookie}` },
    { ...headers, authorization: 'Basic eDp5' },
    { ...headers, authorization: `Bearer lhs_${'A'.repeat(43)}` },
  ];
  for (const each of wrong) assertRejected(await read(each), 'UNAUTHENTICATED');
  const asOther = await read({ ...headers, authorization: `Bearer ${other.operator.token}` });
  assert.equal(asOther.body.data.session_id, other.operator.token);
  assert.equal((await read({ ...headers, cookie: `a=b; ${cookie}; c=d` })).status, 200);
  assertInvalid(await read({ ...headers, cookie: `${cookie}; ${cookie}` }), 'Cookie');
});

test('only people have a session of a browser: an agent gets none, and its token is none in parts', async () => {
  assertRejected(await agent.post(`${AUTH}/browser`), 'ACCESS_DENIED');
  assertRejected(await anonymous.post(`${AUTH}/browser`), 'UNAUTHENTICATED');
  const [entry] = (await admin.get('/api/v1/audit?event_type=session.browser&limit=1')).body.data;
  assert.deepEqual([entry.agent_name, entry.result], ['ci', 'denied']);
  const cookie = `leasehold=${agent.token.slice(0, 26)}`;
  const parts = { ...SAME, cookie, 'x-leasehold-session-part': agent.token.slice(26) };
  assertRejected(await read(parts), 'UNAUTHENTICATED');
  assert.equal((await agent.get(SESSION)).status, 200);
});

test('a browser signs out: the session ends and the cookie is removed', async () => {
  const { headers } = await open();
  const renewed = await anonymous.call('POST', `${SESSION}/renew`, undefined, headers);
  assert.deepEqual([renewed.status, renewed.body.data.session_id], [200, undefined]);
  const ended = await anonymous.call('DELETE', SESSION, undefined, headers);
  assert.equal(ended.status, 204);
  assert.equal(ended.headers.get('set-cookie'), 'leasehold=; Path=/api/v1; HttpOnly; SameSite=Strict; Max-Age=0');
  assertRejected(await read(headers), 'UNAUTHENTICATED');
  const operator = await newOperator();
  assert.equal((await operator.delete('/auth/session')).headers.get('set-cookie'), null);
});

test("the administrator's token in a browser has no end, and its use stays loud", async (t) => {
  const own = await startTestService(t);
  await addOperator(own, 'boss', ['admin']);
  const opened = await own.admin.post(`${AUTH}/browser`);
  const data = dataOf(opened, 200, FIELDS);
  assert.deepEqual([data.agent_name, data.expires_at], ['admin', null]);
  const headers = { ...SAME, ...sessionHeaders(opened) };
  assert.equal((await own.anonymous.call('GET', '/api/v1/operators', undefined, headers)).status, 200);
  const { body } = await own.admin.get('/api/v1/audit?event_type=operator.break_glass');
  assert.equal(body.meta.total, 1);
});

test('behind a proxy that speaks HTTPS the cookie is Secure, and passkeys work at the public name alone', async (t) => {
  const flags = ['--public-name=vault.example', '--trusted-proxy=127.0.0.1'];
  const own = await startTestService(t, flags);
  await addOperator(own, 'boss', ['admin']);
  const https = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'vault.example' };
  const opened = await own.admin.call('POST', `${AUTH}/browser`, undefined, https);
  assert.match(opened.headers.get('set-cookie') ?? '', /^__Secure-leasehold=.*; SameSite=Strict; Secure$/);
  const headers = { ...SAME, ...sessionHeaders(opened) };
  const list = (more: Record<string, string>) =>
    own.anonymous.call('GET', '/api/v1/operators', undefined, { ...headers, ...more });
  assert.equal((await list(https)).status, 200);
  assertRejected(await list({}), 'UNAUTHENTICATED');
  assertRejected(await list({ ...https, cookie: headers.cookie.replace('__Secure-', '') }), 'UNAUTHENTICATED');
  const works = async (more: Record<string, string>) =>
    (await own.anonymous.call('GET', `${AUTH}/methods`, undefined, more)).body.data.passkey;
  assert.equal(await works(https), true);
  assert.equal(await works({ 'x-forwarded-host': 'vault.example' }), false);
  for (const host of ['vault.example:8443', '127.0.0.1', 'localhost'])
    assert.equal(await works({ ...https, 'x-forwarded-host': host }), false);
  const unproxied = await admin.call('POST', `${AUTH}/browser`, undefined, https);
  assert.match(unproxied.headers.get('set-cookie') ?? '', /^leasehold=/);
});

test('a one-time code hands a session over, once, and not beyond its end', async () => {
  const operator = await newOperator();
  const { code } = dataOf(await operator.post(`${AUTH}/handoff`), 200, 'code expires_at');
  const opened = await anonymous.post(`${AUTH}/handoff/redeem`, { code });
  assert.equal(dataOf(opened, 200, FIELDS).agent_name, `operator:person-${made}`);
  const session = (await read({ ...SAME, ...sessionHeaders(opened) })).body.data;
  assert.equal(session.ends_at, (await operator.get(SESSION)).body.data.ends_at);
  const [entry] = (await admin.get('/api/v1/audit?event_type=auth.verify&limit=1')).body.data;
  assert.deepEqual([entry.result, entry.reason], ['allowed', 'by a one-time code of a session']);
  for (let n = 0; n < 3; n++) assertRejected(await anonymous.post(`${AUTH}/handoff/redeem`, { code }), 'AUTH_FAILED');
  const [last] = (await admin.get('/api/v1/audit?limit=1')).body.data;
  assert.equal(last.seq, entry.seq, 'a repeated code leaves an entry');
  assert.equal((await operator.delete(SESSION)).status, 204);
});

test('a code of a session that has ended, or that was altered, opens nothing and leaves no entry', async () => {
  const operator = await newOperator();
  const { code } = (await operator.post(`${AUTH}/handoff`)).body.data;
  // Both endings are canonical base64url, so that the MAC decides.
  const altered = [
    `${code.slice(0, -2)}${code.endsWith('AA') ? 'BA' : 'AA'}`,
    `B${code.slice(1)}`,
    `${code}A`,
    'x',
    code.slice(1),
  ];
  for (const each of altered)
    assertRejected(await anonymous.post(`${AUTH}/handoff/redeem`, { code: each }), 'AUTH_FAILED');
  await operator.delete(SESSION);
  const before = (await admin.get('/api/v1/audit?limit=1')).body.data[0].seq;
  for (const each of [code, ...altered])
    assertRejected(await anonymous.post(`${AUTH}/handoff/redeem`, { code: each }), 'AUTH_FAILED');
  assert.equal((await admin.get('/api/v1/audit?limit=1')).body.data[0].seq, before);
});

test('the session of a browser is not handed over, which is recorded', async () => {
  const { headers } = await open();
  assertRejected(await anonymous.call('POST', `${AUTH}/handoff`, undefined, headers), 'ACCESS_DENIED');
  const [entry] = (await admin.get('/api/v1/audit?event_type=session.handoff&limit=1')).body.data;
  assert.deepEqual([entry.result, entry.reason], ['denied', 'the session is that of a browser']);
});

test('codes are charged to the budget of sessions', async (t) => {
  const own = await startTestService(t, ['--sessions-per-hour=2']);
  // Its login is the first session.
  const operator = await addOperator(own, 'ann', ['viewer']);
  const { code } = (await operator.post(`${AUTH}/handoff`)).body.data;
  assertRejected(await operator.post(`${AUTH}/handoff`), 'RATE_LIMITED');
  assert.equal((await own.anonymous.post(`${AUTH}/handoff/redeem`, { code })).status, 200);
});
