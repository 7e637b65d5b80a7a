// Nodes or the database are killed under load: no acknowledged change is lost or applied twice.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startCluster } from '../kit/cluster.ts';
import { newSeed } from '../kit/dice.ts';
import { startPostgres } from '../kit/postgres.ts';
import { scaled } from '../kit/scale.ts';
import { weather } from './crash-load.ts';

const seed = newSeed();
const ROUNDS = scaled(8, 8);

test(`killing nodes under load loses nothing (SEED=${seed})`, async (t) => {
  const cluster = await startCluster(t, { nodes: 3 });
  const tally = await weather({
    cluster,
    seed,
    rounds: ROUNDS,
    async upset(dice, nodes) {
      const victims = nodes.filter(() => dice.chance(0.5));
      for (const victim of victims.length > 0 ? victims : [dice.pick(nodes)]) {
        await victim.end('SIGKILL');
        nodes[nodes.indexOf(victim)] = await cluster.start(victim.dataDir);
      }
    },
  });
  t.diagnostic(JSON.stringify(tally));
  assert.ok(tally.acknowledged > 20 * ROUNDS, 'the load was one');
  assert.ok(tally.inFlight > 0, 'the kills met the nodes at work');
});

test(`killing PostgreSQL under load loses nothing (SEED=${seed})`, async (t) => {
  const server = await startPostgres(t);
  const cluster = await startCluster(t, { nodes: 3, url: server.url() });
  const tally = await weather({
    cluster,
    seed,
    rounds: ROUNDS,
    async upset(dice) {
      await server.kill();
      await sleep(dice.below(1500));
      await server.start();
    },
  });
  t.diagnostic(JSON.stringify(tally));
  assert.ok(tally.acknowledged > 20 * ROUNDS, 'the load was one');
  assert.ok(tally.inFlight > 0, 'the kills met the server at work');
});
