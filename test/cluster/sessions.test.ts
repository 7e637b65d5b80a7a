// A session opened on one node is valid on every node from the first request on, even with parallel requests.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startNodes } from '../kit/cluster.ts';
import { keepAlive } from '../kit/keep-alive.ts';
import { grant, logIn, newLane, register } from './deletion-races.ts';

const ROUNDS = 20;
const REQUESTS = 10;

const { nodes, adminToken } = await startNodes({ after }, { nodes: 2 });
const calls = nodes.map(({ address }) => keepAlive({ after }, address));
const [one, two] = calls;
assert.ok(one && two);

/** Statuses of requests that are sent together. */
const together = async (send: () => Promise<{ status: number }>): Promise<number[]> =>
  (await Promise.all(Array.from({ length: REQUESTS }, send))).map(({ status }) => status);

/** An agent that the first node has registered and logged in. */
async function newAgent(name: string, isKnownToTheOther = false) {
  const lane = newLane(name, adminToken, calls);
  assert.ok(one && two);
  await register(lane, one);
  if (isKnownToTheOther) assert.equal((await two('GET', `/api/v1/agents/${name}`, adminToken)).status, 200);
  await logIn(lane, one, one);
  return lane;
}

for (const isKnown of [false, true]) {
  const order = isKnown ? 'after it has heard' : 'before it has heard';
  test(`a node accepts parallel requests with a new session ${order} of its agent`, async () => {
    for (let round = 0; round < ROUNDS; round++) {
      const { token } = await newAgent(`${isKnown ? 'known' : 'unknown'}-${round}`, isKnown);
      const statuses = await together(() => two('GET', '/auth/session', token));
      assert.deepEqual(statuses, Array<number>(REQUESTS).fill(200), `round ${round}`);
    }
  });
}

test('parallel retrievals with a session of another node are all accepted', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const lane = await newAgent(`retrieves-${round}`);
    assert.equal((await one('POST', '/api/v1/credentials', adminToken, { path: lane.path, value: 'v' })).status, 201);
    await grant(lane, one);
    const statuses = await together(() => two('GET', `/api/v1/credentials/${lane.path}`, lane.token));
    assert.deepEqual(statuses, Array<number>(REQUESTS).fill(200), `round ${round}`);
  }
});

test('a session that another node ends by its first requests is ended on every node', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const { token } = await newAgent(`ends-${round}`);
    const concurrent = Array.from({ length: REQUESTS }, () => two('GET', '/auth/session', token));
    const ended: number = (await two('DELETE', '/auth/session', token)).status;
    await Promise.all(concurrent);
    assert.equal(ended, 204, `round ${round}`);
    for (const call of calls) assert.equal((await call('GET', '/auth/session', token)).status, 401, `round ${round}`);
  }
});
