// Immediate revocation on every node: after the 204 of a deletion no node returns 200 for the deleted resource.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startCluster } from '../kit/cluster.ts';
import { keepAlive } from '../kit/keep-alive.ts';
import { scaled } from '../kit/scale.ts';
import { grant, logIn, newLane, RACES, register, run } from './deletion-races.ts';

const LANES = scaled(2, 16);
const RACES_OF_EACH_KIND = scaled(8, 1000);

test(`of ${4 * RACES_OF_EACH_KIND} races between a deletion and a use on three nodes, no use succeeds after the deletion`, async (t) => {
  const { nodes, adminToken } = await startCluster(t, { nodes: 3 });
  const calls = nodes.map(({ address }) => keepAlive(t, address));
  const [first] = calls;
  assert.ok(first);
  for (const race of RACES) {
    const lanes = Array.from({ length: LANES }, (_, lane) =>
      newLane(`${race.what.split(' ')[1]}-${lane}`, adminToken, calls),
    );
    for (const lane of lanes) {
      const value = { path: lane.path, value: `of ${lane.name}` };
      assert.equal((await first('POST', '/api/v1/credentials', adminToken, value)).status, 201);
      if (race.what !== 'an agent') {
        await register(lane, first);
        await logIn(lane, first, first);
      }
      if (race.what !== 'a policy') await grant(lane, first);
    }
    let races = 0;
    let concurrent = 0;
    await Promise.all(
      lanes.map(async (lane) => {
        while (races < RACES_OF_EACH_KIND) {
          races += 1;
          const deleter = races % 3;
          const { late, concurrent: came } = await run(race, lane, deleter, (deleter + 1) % 3);
          assert.ok(
            late.every((status) => status === 401 || status === 403 || status === 409),
            `${race.what}, deleted on node ${deleter}, got ${late.join(', ')} afterwards`,
          );
          concurrent += came;
        }
      }),
    );
    t.diagnostic(`${race.what}: ${races} races, ${concurrent} concurrent uses succeeded`);
  }
  const logs = await Promise.all(nodes.map(({ admin }) => admin.get('/api/v1/audit/verify')));
  for (const { status, text, body } of logs) {
    assert.equal(status, 200, `${text}\n${nodes.map((node) => node.output()).join('\n')}`);
    assert.equal(body.data.valid, true, text);
  }
});
