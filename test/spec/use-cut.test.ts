// Whatever ends the right to use a credential cuts its open streams, and no others.

import assert from 'node:assert/strict';
import { after, mock, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import type { Client, TestResponse } from '../kit/client.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';
import { openStreams, storeWithTargets, targetOf, VALUE } from '../kit/use.ts';

const STREAMS = 3;
/** What ends streams without a commit is found at this interval. */
const CHECK_INTERVAL_MS = 500;

// The server's intervals stand still, so that a stream that is cut was cut by the commit.
mock.timers.enable({ apis: ['setInterval'] });
after(() => mock.timers.reset());

const service = await startTestService({ after });
const { address, admin } = service;
const upstream = await startUpstream({ after }, (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('data: 1\n\n');
});
interface Own {
  readonly name: string;
  readonly path: string;
  readonly agent: Client;
  readonly leaseId: string;
}

async function newOwn(name: string) {
  const path = `${name}/key`;
  await storeWithTargets(service, path, upstream);
  const agent = await service.agent(name, { [`${name}/*`]: ['use'] });
  const { data } = (await agent.post('/api/v1/leases/use', { path })).body;
  return { name, path, agent, leaseId: data.lease_id, token: data.token };
}

const open = (path: string, token: string, count = STREAMS) =>
  openStreams(count, address, `/use/${path}/-/events`, { authorization: `Bearer ${token}` });

const ENDS: Readonly<Record<string, (own: Own) => Promise<TestResponse>>> = {
  session: ({ agent }) => agent.delete('/auth/session'),
  agent: ({ name }) => admin.delete(`/api/v1/agents/${name}`),
  policy: ({ name }) => admin.delete(`/api/v1/policies/${name}-0`),
  credential: ({ path }) => admin.delete(`/api/v1/credentials/${path}`),
  targets: ({ path }) => admin.delete(`/api/v1/targets/${path}`),
  'other-target': ({ path }) =>
    admin.put(`/api/v1/targets/${path}`, {
      targets: [targetOf(upstream, { paths: ['/v2/*'] })],
      placement: { kind: 'bearer' },
    }),
  'all-leases': ({ name }) => admin.post('/api/v1/leases/revoke', { agent: name }),
};

/** Opens streams with the token, and ends them. */
async function cut(path: string, token: string, end: () => Promise<TestResponse>): Promise<void> {
  const streams = await open(path, token);
  const answer = await end();
  assert.equal([200, 204].includes(answer.status), true, answer.text);
  await Promise.all(streams.map(({ broken }) => broken));
}

for (const [name, end] of Object.entries(ENDS)) {
  test(`the end of the ${name} cuts the streams of a session`, async () => {
    const own = await newOwn(name);
    await cut(own.path, own.agent.token, () => end(own));
    await assertRecorded(STREAMS, own.path);
  });
}

test('the end of a lease cuts the streams of its token, and those of a session stay', async () => {
  const own = await newOwn('lease');
  const [other] = await open(own.path, own.agent.token, 1);
  await cut(own.path, own.token, () => own.agent.delete(`/api/v1/leases/${own.leaseId}`));
  await assertRecorded(STREAMS, own.path);
  mock.timers.tick(CHECK_INTERVAL_MS);
  assert.equal((await own.agent.delete(`/api/v1/leases/${other?.leaseId}`)).status, 204);
  await other?.broken;
});

test('a stream ends with its lease', async () => {
  const { path, agent } = await newOwn('short');
  // On a busy machine a short lease may end before its stream is open.
  for (const ttl of [1, 4, 16, 64]) {
    const { data } = (await agent.post('/api/v1/leases/use', { path, ttl })).body;
    const [stream] = await open(path, data.token, 1).catch(() => []);
    if (stream === undefined) continue;
    await until(() => Date.now() >= Date.parse(data.expires_at));
    mock.timers.tick(CHECK_INTERVAL_MS);
    await stream.broken;
    assert.equal(Date.now() >= Date.parse(data.expires_at), true);
    await assertRecorded(1, path, 'expired');
    return;
  }
  assert.fail('no lease lasted until its stream was open');
});

test('what does not end the right to use a credential cuts nothing', async () => {
  const { path, agent } = await newOwn('unrelated');
  const [stream] = await open(path, agent.token, 1);
  await admin.post('/api/v1/credentials', { path, value: `${VALUE}-2` });
  await admin.post('/api/v1/policies', {
    name: 'more',
    principal: 'agent:unrelated',
    resources: ['unrelated/*'],
    actions: ['list'],
  });
  const second = await service.agent('bystander', { 'unrelated/*': ['use'] });
  await second.delete('/auth/session');
  mock.timers.tick(CHECK_INTERVAL_MS);
  assert.equal(await Promise.race([stream?.broken, admin.get('/api/v1/audit?limit=1').then(() => null)]), null);
  await admin.delete(`/api/v1/credentials/${path}`);
  await stream?.broken;
});

test('a panic about an agent ends its leases and cuts its streams', async () => {
  const { agent, name, path } = await newOwn('suspect');
  const streams = await open(path, agent.token);
  const { body } = await admin.post('/api/v1/panic', { agent: name });
  await Promise.all(streams.map(({ broken }) => broken));
  // Each stream has a lease too.
  assert.deepEqual([body.data.leases, body.data.streams], [1 + STREAMS, STREAMS]);
});

/** Each use has a result that says why it ended. */
async function assertRecorded(count: number, path: string, ended = 'revoked'): Promise<void> {
  const results = async (): Promise<string[]> => {
    const { body } = await admin.get(`/api/v1/audit?limit=1000&event_type=credential.use_result&resource=${path}`);
    return body.data.map((entry: { ended: string }) => entry.ended);
  };
  await until(async () => (await results()).length >= count);
  assert.deepEqual([...new Set(await results())], [ended]);
}
