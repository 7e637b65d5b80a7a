// The token of a request to a base URL: every place that SDKs have, exactly one token, and none is forwarded.

import assert from 'node:assert/strict';
import type { OutgoingHttpHeaders } from 'node:http';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets, VALUE } from '../kit/use.ts';

const service = await startTestService({ after });
const { address } = service;
const upstream = await startUpstream({ after }, (_request, response) => response.end('reached'));
const agent = await service.agent('agent', { 'api/*': ['use'] });
const other = await service.agent('other', { 'api/*': ['use'] });
await storeWithTargets(service, 'api/bearer', upstream);
await storeWithTargets(service, 'api/header', upstream, {
  placement: { kind: 'header', name: 'DD-Api-Key', template: 'Token {value}' },
});
await storeWithTargets(service, 'api/raw', upstream, {
  placement: { kind: 'header', name: 'Authorization', template: '{value}' },
});
await storeWithTargets(service, 'api/query', upstream, { placement: { kind: 'query', name: 'key' } });
const { token } = (await agent.post('/api/v1/leases/use', { path: 'api/bearer' })).body.data;
const basic = (password: string) => `Basic ${Buffer.from(`user:${password}`).toString('base64')}`;
const ANOTHER = `lhu_${'a'.repeat(43)}`;

async function ask(path: string, headers: OutgoingHttpHeaders) {
  const before = upstream.requests.length;
  const { response, text } = await exchange(address, `/use/${path}`, headers);
  const body = await text();
  const request = upstream.requests.length > before ? upstream.requests.at(-1) : undefined;
  const sent = JSON.stringify([request?.url, request?.rawHeaders]);
  for (const secret of [token, agent.token]) {
    assert.equal(sent.includes(secret) || sent.includes(basic(secret)), false, sent);
    assert.equal(body.includes(secret), false);
  }
  const error = response.headers['x-leasehold-error'] === '1' ? JSON.parse(body).error : null;
  return { status: response.statusCode, code: error?.code, message: String(error?.message), request };
}

test('the token is taken from each place in which an SDK has its key', async () => {
  for (const own of [token, agent.token]) {
    for (const headers of [
      { authorization: `Bearer ${own}` },
      { authorization: `bearer  ${own}` },
      { authorization: basic(own) },
      { authorization: `token ${own}` },
      { authorization: own },
      { 'x-api-key': own },
      { 'API-Key': own },
      { 'x-goog-api-key': own },
      { 'x-api-key': own, authorization: `Bearer ${own}` },
    ]) {
      const { status, request } = await ask('api/bearer/-/a?b=c', headers);
      assert.equal(status, 200, JSON.stringify(headers));
      assert.deepEqual([request?.headers.authorization, request?.url], [`Bearer ${VALUE}`, '/a?b=c']);
    }
  }
});

test("the token is taken from the placement's header", async () => {
  const first = await ask('api/header/-/a', { 'dd-api-key': agent.token });
  assert.deepEqual([first.status, first.request?.headers['dd-api-key']], [200, `Token ${VALUE}`]);
  assert.equal((await ask('api/header/-/a', { 'DD-API-KEY': `Token ${agent.token}` })).status, 200);
  const raw = await ask('api/raw/-/a', { authorization: agent.token });
  assert.deepEqual([raw.status, raw.request?.headers.authorization], [200, VALUE]);
  assert.equal((await ask('api/header/-/a', { authorization: `Bearer ${agent.token}` })).status, 200);
});

test("the token is taken from the placement's parameter, and the others are forwarded as they were", async () => {
  const cases = [
    [`?key=${agent.token}`, `?key=${VALUE}`],
    [`?a=%20&key=${agent.token}&b=+`, `?a=%20&b=+&key=${VALUE}`],
    [`?key=${agent.token}&key=${agent.token}`, `?key=${VALUE}`],
  ];
  for (const [query, expected] of cases) {
    const { status, request, message } = await ask(`api/query/-/a${query}`, {});
    assert.deepEqual([status, request?.url], [200, `/a${expected}`], message);
  }
});

test('different tokens are rejected', async () => {
  const bearer = { authorization: `Bearer ${token}` };
  for (const headers of [
    { ...bearer, 'x-api-key': ANOTHER },
    { ...bearer, 'x-api-key': 'of-another-vault' },
    { ...bearer, 'api-key': '' },
    { 'x-api-key': [token, ANOTHER] },
    { authorization: basic(token), 'x-goog-api-key': agent.token },
  ]) {
    const { status, message } = await ask('api/bearer/-/a', headers);
    assert.deepEqual([status, message], [400, 'token: must be the same wherever the request has one']);
  }
  for (const [query, headers] of [
    [`?b=${ANOTHER}`, bearer],
    ['', { ...bearer, 'x-own': ANOTHER }],
  ] as const) {
    const { status, message } = await ask(`api/bearer/-/a${query}`, headers);
    assert.deepEqual([status, message.startsWith('token: must be sent only in Authorization')], [400, true]);
  }
});

test('a token in another place is rejected, so that it is not forwarded', async () => {
  for (const [own, code] of [
    [token, 'ACCESS_DENIED'],
    [agent.token, 'INVALID_REQUEST'],
  ] as const) {
    const bearer = { authorization: `Bearer ${own}` };
    for (const headers of [
      { ...bearer, 'x-own': `"${own}"` },
      { ...bearer, cookie: `session=${own}` },
      { ...bearer, 'dd-api-key': own },
      { 'x-own': own },
      { 'dd-api-key': own },
      { authorization: `Custom key=${own}` },
    ]) {
      assert.equal((await ask('api/bearer/-/a', headers)).code, code, JSON.stringify(headers));
    }
    assert.equal((await ask(`api/bearer/-/${own}`, bearer)).code, code);
    assert.equal((await ask(`api/bearer/-/a?key=${own}`, bearer)).code, code);
    assert.equal((await ask(`api/bearer/-/a?key=${own}`, {})).code, code);
  }
  assert.equal((await ask(`api/query/-/a?k=${agent.token}`, {})).code, 'INVALID_REQUEST');
});

test('a lease of another agent or path with the hash of the token is not accepted', async () => {
  const issued = async (path: string) => (await agent.post('/api/v1/leases/use', { path })).body.data;
  const [first, second] = [await issued('api/bearer'), await issued('api/header')];
  const { lease_id } = (await other.post('/api/v1/leases/use', { path: 'api/bearer' })).body.data;
  const move = async (from: string, to: string): Promise<void> => {
    const [row] = await selectRows(service.dataDir, `SELECT token_hash FROM leases WHERE id = '${from}'`);
    await executeSql(service.dataDir, `UPDATE leases SET token_hash = NULL WHERE id = '${from}'`);
    await executeSql(service.dataDir, `UPDATE leases SET token_hash = '${row?.['token_hash']}' WHERE id = '${to}'`);
  };
  const status = async (path: string, own: string) =>
    (await ask(`${path}/-/a`, { authorization: `Bearer ${own}` })).status;
  assert.equal(await status('api/bearer', first.token), 200);
  await move(first.lease_id, lease_id);
  assert.equal(await status('api/bearer', first.token), 401);
  await move(second.lease_id, first.lease_id);
  assert.equal(await status('api/bearer', second.token), 401);
});
