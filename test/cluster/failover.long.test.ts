// A failover to a standby: to one that had confirmed every commit, and to one that had not.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Node, startCluster } from '../kit/cluster.ts';
import { newSeed } from '../kit/dice.ts';
import { startPostgres } from '../kit/postgres.ts';
import type { PostgresServer } from '../kit/postmaster.ts';
import { startStandby } from '../kit/standby.ts';
import { untilWell, weather } from './crash-load.ts';

const seed = newSeed();

/** SOURCE: the issue: the database's own outage, plus at most that. */
const MOST_MS = 5000;

/** Both servers in one URL, as an operator writes it. */
function urlOfBoth(first: PostgresServer, second: PostgresServer): string {
  const { username, password, pathname } = new URL(first.url());
  const hosts = [first, second].map(({ port }) => `127.0.0.1:${port}`).join(',');
  return `postgres://${username}:${password}@${hosts}${pathname}?target_session_attrs=read-write`;
}

/**
 * Resolves to the time of the first batch of the node, made by an operation without an entry, so that the load knows
 * all entries.
 */
async function firstTurn({ admin }: Node): Promise<number> {
  for (;;) {
    const answer = await admin.get('/api/v1/agents').catch(() => null);
    if (answer?.status === 200) return performance.now();
    await sleep(20);
  }
}

test(`a failover to a synchronous standby under load loses nothing, and callers wait little longer than it takes (SEED=${seed})`, async (t) => {
  const primary = await startPostgres(t);
  const standby = await startStandby(t, primary, { name: 'standby', isSynchronous: true });
  const cluster = await startCluster(t, { nodes: 3, url: urlOfBoth(primary, standby.server) });
  let outageMs = 0;
  const tally = await weather({
    cluster,
    seed,
    rounds: 1,
    async upset(_dice, nodes) {
      await primary.kill();
      await standby.promote();
      const promotedAt = performance.now();
      const backAt = await Promise.all(nodes.map(firstTurn));
      outageMs = Math.max(...backAt) - promotedAt;
    },
  });
  t.diagnostic(`${JSON.stringify(tally)}; after the promotion ${Math.round(outageMs)} ms`);
  assert.ok(outageMs < MOST_MS, `${outageMs} ms`);
  assert.ok(tally.inFlight > 0, 'the failover met the nodes at work');
});

test('after a failover that lost acknowledged entries every node rejects requests until the loss is accepted', async (t) => {
  const primary = await startPostgres(t);
  const standby = await startStandby(t, primary, { name: 'standby', isSynchronous: false });
  const cluster = await startCluster(t, { nodes: 2, url: urlOfBoth(primary, standby.server) });
  const [one, two] = cluster.nodes;
  assert.ok(one && two);
  assert.equal((await one.admin.post('/api/v1/credentials', { path: 'a', value: 'v' })).status, 201);
  await sleep(500);
  await standby.server.stop();
  // Acknowledged, and seen by each node.
  for (const { admin } of [one, two]) assert.equal((await admin.get('/api/v1/credentials/a')).status, 200);
  const { total } = (await one.admin.get('/api/v1/audit?limit=1')).body.meta;
  await primary.kill();
  await standby.server.start();
  await standby.promote();

  for (const { admin, output } of [one, two]) {
    for (let tries = 0; tries < 20; tries++) {
      const answer = await admin.get('/api/v1/credentials/a');
      assert.equal(answer.status, 503, answer.text);
      await sleep(50);
    }
    assert.equal((await admin.get('/api/v1/health')).body.data.status, 'failing');
    assert.match(
      output(),
      new RegExp(`the audit log has lost entry ${total}, which this node has seen: it ends at entry \\d+`),
    );
  }

  await one.end('SIGTERM');
  await assert.rejects(
    cluster.start(one.dataDir),
    new RegExp(`this node has seen entry ${total}.* 127.0.0.1:${primary.port} did not respond and may have them`),
  );
  // The primary is lost for good, so it is no longer in the URL.
  const again = await cluster.start(one.dataDir, [], standby.server.url());
  assert.match(again.output(), /WARNING {2}.*this node has seen entry \d+, and the log ends at \d+/);
  assert.equal((await again.admin.get('/api/v1/credentials/a')).status, 503);
  assert.equal((await again.admin.post('/api/v1/audit/rollback', {})).status, 200);
  assert.equal((await again.admin.get('/api/v1/credentials/a')).status, 200);
  const started = (await again.admin.get('/api/v1/audit?event_type=service.start&limit=1')).body.data[0];
  assert.match(started.reason, /has lost entries of the log/);
  assert.equal((await again.admin.get('/api/v1/audit/verify')).body.data.valid, true);
  // The other node has seen the lost entries, whatever was written since.
  assert.equal((await two.admin.get('/api/v1/credentials/a')).status, 503);
  await two.end('SIGKILL');
  const other = await cluster.start(two.dataDir, ['--accept-rollback']);
  await untilWell([again, other]);
});
