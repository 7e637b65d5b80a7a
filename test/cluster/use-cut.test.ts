// A change on one node cuts the streams on another: within a second, without a message between the nodes.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { logIn, readAgentKey, type TestResponse } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { openStreams, storeWithTargets } from '../kit/use.ts';

const STREAMS = 5;
const CUT_MS = 1000;
/** WHY several: another process may delay any one cut. */
const MAX_TRIES = 5;

const { nodes } = await startNodes({ after }, { nodes: 2 });
const [first, second] = nodes;
assert.ok(first && second);
const { admin } = first;
const upstream = await startUpstream({ after }, (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('data: 1\n\n');
});

const ENDS: Readonly<Record<string, (name: string, token: string, leaseId: string) => Promise<TestResponse>>> = {
  session: (_name, token) => first.as(token).delete('/auth/session'),
  agent: (name) => admin.delete(`/api/v1/agents/${name}`),
  policy: (name) => admin.delete(`/api/v1/policies/${name}-0`),
  credential: (name) => admin.delete(`/api/v1/credentials/${name}/key`),
  targets: (name) => admin.delete(`/api/v1/targets/${name}/key`),
  lease: (_name, token, leaseId) => first.as(token).delete(`/api/v1/leases/${leaseId}`),
};

for (const [kind, end] of Object.entries(ENDS)) {
  /** The milliseconds until the last stream is cut. */
  const cut = async (name: string): Promise<number> => {
    const path = `${name}/key`;
    await storeWithTargets(first, path, upstream);
    const agent = await first.agent(name, { [`${name}/*`]: ['use'] });
    const token = await logIn(second.address, name, readAgentKey(first.dataDir, name));
    const { data } = (await agent.post('/api/v1/leases/use', { path })).body;
    const headers = { authorization: `Bearer ${kind === 'lease' ? data.token : token}` };
    const streams = await openStreams(STREAMS, second.address, `/use/${path}/-/events`, headers);
    const answer = await end(name, token, data.lease_id);
    const endedAt = performance.now();
    assert.equal([200, 204].includes(answer.status), true, answer.text);
    return Math.max(...(await Promise.all(streams.map(({ broken }) => broken)))) - endedAt;
  };

  test(`the end of the ${kind} on one node cuts the streams on the other within a second`, async () => {
    const took: number[] = [];
    do took.push(await cut(`${kind}-${took.length}`));
    while (took.every((ms) => ms >= CUT_MS) && took.length < MAX_TRIES);
    assert.ok(Math.min(...took) < CUT_MS, took.map(Math.round).join(', '));
  });
}
