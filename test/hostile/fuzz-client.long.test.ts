// 50,000 random requests over plain HTTP, TLS and a Unix socket, a part of them with the token of an agent, leave the
// same servers and the same brokers serving.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { childrenOf } from '../kit/processes.ts';
import { scaled } from '../kit/scale.ts';
import { fuzzClients, startEntrances } from './hostile-clients.ts';

const seed = newSeed();
/** TLS takes most of the time. */
const SHARES: Readonly<Record<string, number>> = { HTTP: 0.5, 'Unix socket': 0.4, TLS: 0.1 };
const wanted = scaled(5000, 50_000);

test(`${wanted} requests of hostile clients (SEED=${seed})`, async (t) => {
  const entrances = await startEntrances({ after });
  const brokers = entrances.map(({ process }) => childrenOf(process.pid));
  await Promise.all(
    entrances.map(async (entrance, index) => {
      const started = performance.now();
      const sent = await fuzzClients(entrance, new Dice(seed + index), wanted * (SHARES[entrance.name] ?? 0));
      t.diagnostic(`${entrance.name}: ${sent} requests in ${Math.round((performance.now() - started) / 1000)} s`);
      assert.equal(entrance.process.child.exitCode, null, entrance.process.output());
      assert.equal(await entrance.health(), 200);
      assert.deepEqual(childrenOf(entrance.process.pid), brokers[index], entrance.process.output());
    }),
  );
});
