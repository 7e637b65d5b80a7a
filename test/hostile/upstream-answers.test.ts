// Whatever upstreams answer, the same server and the same broker serve the next request.

import { after, test } from 'node:test';
import { Dice, newSeed } from '../kit/dice.ts';
import { startScene } from './hostile-upstreams.ts';

const seed = newSeed();

test(`random answers of upstreams (SEED=${seed})`, async () => {
  const scene = await startScene({ after });
  await scene.fuzz(new Dice(seed), 400);
  await scene.assertServes();
});
