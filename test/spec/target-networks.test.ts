// Where a value may go is an operator's decision: http, internal networks and private authorities, within the networks
// that the server's flag allows, and never to metadata services or to the server itself. SOURCE: docs/use.md.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';

const service = await startTestService({ after });
const { admin } = service;
const upstream = await startUpstream({ after }, (_request, response) => response.end('reached'));
const { caPem } = upstream;
const origin = `https://127.0.0.1:${upstream.port}`;
const placement = { kind: 'bearer' };
const OPEN = { origin: 'https://api.example.com' };

const put = (who: Pick<TestService['admin'], 'put'>, path: string, targets: readonly object[], fields: object = {}) =>
  who.put(`/api/v1/targets/${path}`, { targets, placement, ...fields });

test('an agent may not set http, allow_networks or ca_pem, and keeps what an operator has set from being loosened', async () => {
  const agent = await service.agent('storing', { 'net/*': ['store', 'list', 'use'] });
  const editor = await addOperator(service, 'ed', ['editor'], { 'net/*': ['store', 'list'] });
  await storeWithTargets(service, 'net/key', [OPEN]);
  const local = { origin, allow_networks: ['127.0.0.0/8'], ca_pem: caPem };
  const attempts: readonly (readonly [targets: readonly object[], field: string, fields?: object])[] = [
    [[{ ...OPEN, allow_networks: ['127.0.0.0/8'] }], 'targets[0].allow_networks'],
    [[OPEN, { ...OPEN, allow_networks: ['8.8.8.8/32'] }], 'targets[1].allow_networks'],
    [[{ origin: 'http://10.0.0.1', allow_networks: ['10.0.0.0/8'] }], 'targets[0].allow_networks'],
    [[{ ...OPEN, ca_pem: caPem }], 'targets[0].ca_pem'],
    [[local], 'targets[0].allow_networks', { service: 'github' }],
    [[{ origin: 'https://acme.atlassian.net', ca_pem: caPem }], 'targets[0].ca_pem', { service: 'jira' }],
  ];
  for (const [targets, field, fields] of attempts) {
    const answer = await put(agent, 'net/key', targets, fields);
    assertRejected(answer, 'ACCESS_DENIED');
    const { message } = answer.body.error;
    assert.ok(message.startsWith(`Access denied: ${field}: only an operator or the administrator may set`), message);
    assert.match(message, /Ask one to run leasehold target put net\/key/);
    const [entry] = (await admin.get('/api/v1/audit?limit=1')).body.data;
    assert.deepEqual([entry.event_type, entry.result, entry.agent_name], ['target.put', 'denied', 'storing']);
    for (const who of [admin, editor]) assert.equal((await put(who, 'net/key', targets, fields)).status, 200);
    // Nor can the agent set again the networks that an operator has set.
    assertRejected(await put(agent, 'net/key', targets, fields), 'ACCESS_DENIED');
  }
  for (const [targets, fields] of [
    [[OPEN], {}],
    [undefined, { service: 'openai', placement: undefined }],
  ] as const) {
    const body = { targets, placement, ...fields };
    assert.equal((await agent.put('/api/v1/targets/net/key', body)).status, 200);
  }
});

test('a network of link-local addresses or metadata services is rejected, and reached by none that contains it', async () => {
  await storeWithTargets(service, 'net/metadata', [OPEN]);
  for (const network of ['169.254.0.0/16', 'fd00:ec2::254/128']) {
    const answer = await put(admin, 'net/metadata', [{ ...OPEN, allow_networks: ['10.0.0.0/8', network] }]);
    assertRejected(answer, 'INVALID_REQUEST');
    assert.match(answer.body.error.message, /^targets\[0\]\.allow_networks\[1\]: must not be a network of link-local/);
  }
  for (const network of ['10.0.0.0/33', 'x/8'])
    assertRejected(await put(admin, 'net/metadata', [{ ...OPEN, allow_networks: [network] }]), 'INVALID_REQUEST');
  const user = await service.agent('metadata', { 'net/*': ['use'] });
  for (const host of ['169.254.169.254', '[fd00:ec2::254]']) {
    const target = { origin: `http://${host}`, allow_networks: ['0.0.0.0/0', '::/0'] };
    assert.equal((await put(admin, 'net/metadata', [target])).status, 200, host);
    const answer = await user.post('/api/v1/use', { path: 'net/metadata', method: 'GET', url: '/latest/meta-data/' });
    assertRejected(answer, 'UPSTREAM_FAILED');
    assert.match(answer.body.error.message, /refused_address/);
  }
});

test("the server's own listener is refused at every address of this machine", async () => {
  const user = await service.agent('looping', { 'net/*': ['use'] });
  const { port } = new URL(service.address);
  for (const host of ['127.0.0.2', 'localhost', '[::]']) {
    const path = `net/own-${Buffer.from(host).toString('hex')}`;
    await storeWithTargets(service, path, [
      { origin: `http://${host}:${port}`, allow_networks: ['0.0.0.0/0', '::/0'] },
    ]);
    const call = { path, method: 'GET', url: '/metrics' };
    const answer = await user.post('/api/v1/use', call);
    assertRejected(answer, 'UPSTREAM_FAILED');
    assert.match(answer.body.error.message, /refused_address/, host);
    const headers = { authorization: `Bearer ${user.token}` };
    const { response } = await exchange(service.address, `/use/${path}/-/metrics`, headers);
    assert.deepEqual([response.statusCode, response.headers['x-leasehold-error']], [502, '1'], host);
    response.resume();
  }
});

test('--target-networks limits what anybody may write, and the targets that were stored before', async (t) => {
  const dataDir = join(temporaryDirectory(t), 'data');
  const before = await startTestService(t, [], dataDir);
  await storeWithTargets(before, 'net/key', upstream);
  const first = await before.agent('user', { 'net/*': ['use'] });
  const call = { path: 'net/key', method: 'GET', url: `${origin}/` };
  assert.equal((await first.post('/api/v1/use', call)).status, 200);
  await before.stop();

  const limited = await startTestService(t, ['--target-networks', '10.0.0.0/8,fd12::/16'], dataDir);
  const requests = upstream.requests.length;
  const refused = await limited.as(first.token).post('/api/v1/use', call);
  assertRejected(refused, 'UPSTREAM_FAILED');
  assert.match(refused.body.error.message, /refused_address/);
  assert.equal(upstream.requests.length, requests);
  for (const network of ['127.0.0.0/8', '0.0.0.0/0', '10.0.0.0/7', '::/0', 'fd13::/32']) {
    const answer = await put(limited.admin, 'net/key', [{ ...OPEN, allow_networks: ['10.1.0.0/16', network] }]);
    assertRejected(answer, 'ACCESS_DENIED');
    const rule = 'targets[0].allow_networks[1] must be within 10.0.0.0/8, fd12::/16';
    assert.ok(answer.body.error.message.includes(rule), answer.text);
  }
  const allowed = [{ ...OPEN, allow_networks: ['10.1.0.0/16', '::ffff:10.0.0.0/104', 'fd12:1::/32'] }];
  assert.equal((await put(limited.admin, 'net/key', allowed)).status, 200);
  await limited.stop();

  const none = await startTestService(t, ['--target-networks', 'none'], dataDir);
  assertRejected(await put(none.admin, 'net/key', allowed), 'ACCESS_DENIED');
  assert.equal((await put(none.admin, 'net/key', [OPEN])).status, 200);
});
