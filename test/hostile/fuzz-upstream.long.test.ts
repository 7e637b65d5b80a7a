// Random answers of upstreams to 50,000 brokered requests leave the same server and the same broker serving.

import { test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { scaled } from '../kit/scale.ts';
import { startScene } from './hostile-upstreams.ts';

const seed = newSeed();
const wanted = scaled(1000, 50_000);

test(`${wanted} brokered requests to hostile upstreams (SEED=${seed})`, async (t) => {
  const scene = await startScene(t);
  const started = performance.now();
  const asked = await scene.fuzz(new Dice(seed), wanted);
  t.diagnostic(`${asked} requests in ${Math.round((performance.now() - started) / 1000)} s`);
  await scene.assertServes();
});
