// Verification: how many entries a second GET /api/v1/audit/verify checks, and what retrievals at half load notice of it.

import { createClient } from '../test/kit/client.ts';
import { BenchVault, SMALL } from './bench-vault.ts';
import type { LoadResult } from './loads.ts';
import { sumUp } from './measure.ts';
import type { ServiceProgram } from './program.ts';
import { measureQueries } from './queries.ts';
import { CONNECTIONS } from './retrieval.ts';
import type { Findings, Measure, Stage } from './types.ts';

/** Entries a second. */
async function verify({ address, adminToken }: ServiceProgram): Promise<number> {
  const admin = createClient(address, adminToken);
  const startedAt = performance.now();
  const { body, text } = await admin.get('/api/v1/audit/verify');
  const seconds = (performance.now() - startedAt) / 1000;
  if (body?.data?.valid !== true) throw new Error(`the chain does not verify: ${text}`);
  return body.data.entries / seconds;
}

export async function measureRate({ say }: Stage, vault: BenchVault, runs: number): Promise<Measure> {
  const rates: number[] = [];
  for (let run = 1; run <= runs; run++) {
    const rate = await verify(vault.program);
    rates.push(rate);
    say(`Verification: run ${run} of ${runs}: ${Math.round(rate)} entries a second`);
  }
  return sumUp(rates);
}

/** The queries of the same log are measured with it: it takes a while to write. */
export async function measureLog(stage: Stage): Promise<Findings> {
  const { plan } = stage;
  const vault = await BenchVault.start(stage, { ...SMALL, entries: plan.logEntries });
  const rate = await measureRate(stage, vault, plan.verifications);
  const queries = await measureQueries(stage, vault);
  const { alone, beside, perSecond } = await measureBeside(stage, vault);
  await vault.remove();
  const entries = plan.logEntries.toLocaleString('en-US');
  const p99s = (loads: readonly LoadResult[]) => loads.map(({ p99Ms }) => p99Ms);
  const { rounds } = plan;
  return {
    figures: [
      {
        name: 'Verification of the log',
        unit: 'entries/s',
        rounds: plan.verifications,
        ...rate,
        required: { kind: 'at least', limit: 500_000 },
      },
      { name: 'Retrieval, half load, no verification, p99', unit: 'ms', rounds, ...sumUp(p99s(alone)), required: null },
      {
        name: 'Retrieval, half load, while verifying, p99',
        unit: 'ms',
        rounds,
        ...sumUp(p99s(beside)),
        required: null,
      },
      {
        name: 'Retrieval p99 while verifying, of without',
        unit: '',
        rounds,
        ...sumUp(p99s(beside).map((p99, index) => p99 / (alone[index]?.p99Ms ?? Number.NaN))),
        required: { kind: 'at most', limit: 2 },
      },
      ...queries.map(({ name, ...measure }) => ({
        name: `Audit query: ${name}`,
        unit: 'ms',
        ...measure,
        required: null,
      })),
    ],
    curves: [],
    notes: [
      `Verification and audit queries: a log of ${entries} entries. While verifying: one verification after the other, ${Math.round(perSecond)} retrievals a second due.`,
    ],
  };
}

async function measureBeside(stage: Stage, vault: BenchVault) {
  const { plan, generator, say } = stage;
  const { target } = vault;
  const warmUp = { kind: 'full', target, connections: CONNECTIONS, amount: plan.warmUpRequests } as const;
  await generator.run(warmUp);
  const perSecond = (await generator.run(warmUp)).perSecond / 2;
  const job = { kind: 'paced', target, connections: CONNECTIONS, perSecond, seconds: plan.halfSeconds } as const;
  const alone: LoadResult[] = [];
  const beside: LoadResult[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    alone.push(await generator.run(job));
    let isLoadOver = false;
    const verifying = (async () => {
      while (!isLoadOver) await verify(vault.program);
    })();
    beside.push(await generator.run(job));
    isLoadOver = true;
    await verifying;
    const [a, b] = [alone, beside].map((loads) => loads.at(-1)?.p99Ms.toFixed(2));
    say(`Verification: round ${round} of ${plan.rounds}: p99 of retrievals ${a} ms, while verifying ${b} ms`);
  }
  return { alone, beside, perSecond };
}
