// Verification of the log: its rate, and its effect on retrievals at half of full load.

import { createClient } from '../test/kit/client.ts';
import { toFigure } from './measurement.ts';
import { CONNECTIONS } from './retrieval.ts';
import type { Figure, Stage } from './types.ts';
import { type BenchVault, removeVault, SMALL, startVault } from './vault.ts';

/** Returns entries per second. */
async function verify({ service }: BenchVault): Promise<number> {
  const startedAt = performance.now();
  const { body, text } = await createClient(service.address, service.adminToken).get('/api/v1/audit/verify');
  const seconds = (performance.now() - startedAt) / 1000;
  if (body?.data?.valid !== true) throw new Error(`the log does not verify: ${text}`);
  return body.data.entries / seconds;
}

export async function measureLog(stage: Stage): Promise<Figure[]> {
  const { plan, generator, say } = stage;
  const vault = await startVault(stage, { ...SMALL, entries: plan.logEntries });
  const rates: number[] = [];
  for (let run = 1; run <= plan.verifications; run++) rates.push(await verify(vault));

  const { target } = vault;
  const load = { target, connections: CONNECTIONS, amount: plan.warmUpRequests } as const;
  await generator.run({ kind: 'retrievals', ...load });
  const perSecond = (await generator.run({ kind: 'retrievals', ...load })).perSecond / 2;
  const paced = { kind: 'paced', target, connections: CONNECTIONS, perSecond, seconds: plan.halfLoadSeconds } as const;
  const ratios: number[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const without = await generator.run(paced);
    let isOver = false;
    const verifying = (async () => {
      while (!isOver) await verify(vault);
    })();
    const during = await generator.run(paced);
    isOver = true;
    await verifying;
    ratios.push(during.p99Ms / without.p99Ms);
    say(
      `Round ${round} of ${plan.rounds}: p99 ${without.p99Ms.toFixed(2)} ms, verifying ${during.p99Ms.toFixed(2)} ms`,
    );
  }
  await removeVault(vault);
  return [
    toFigure('Verification of the log', 'entries/s', rates),
    toFigure('Retrieval p99 during verification relative to without', '', ratios),
  ];
}
