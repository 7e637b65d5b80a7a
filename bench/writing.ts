// Logins and stores, in turns with a bare route that shows how the machine does meanwhile.

import { BenchVault, SMALL } from './bench-vault.ts';
import type { LoadJob, LoadResult } from './loads.ts';
import { sumUp } from './measure.ts';
import { startBare } from './program.ts';
import { CONNECTIONS } from './retrieval.ts';
import type { Figure, Findings, Stage } from './types.ts';

interface Kind {
  readonly name: string;
  readonly floor: number | null;
  readonly job: (amount: number) => LoadJob;
  readonly loads: LoadResult[];
}

export async function measureWriting(stage: Stage): Promise<Findings> {
  const { scope, say, plan, generator } = stage;
  const vault = await BenchVault.start(stage, SMALL);
  const bare = await startBare(scope);
  const { target } = vault;
  const { adminToken } = vault.program;
  let first = target.credentials;
  const stores = (amount: number): LoadJob => {
    const job = { kind: 'stores', target, adminToken, first, connections: CONNECTIONS, amount } as const;
    first += amount;
    return job;
  };
  const kinds: readonly Kind[] = [
    {
      name: 'Bare Fastify beside logins and stores',
      floor: null,
      job: (amount) => ({
        kind: 'full',
        target: { ...target, address: bare.address },
        connections: CONNECTIONS,
        amount,
      }),
      loads: [],
    },
    {
      name: 'Logins (challenge and verify)',
      floor: 4000,
      job: (amount) => ({ kind: 'logins', target, connections: CONNECTIONS, amount }),
      loads: [],
    },
    { name: 'Stores', floor: null, job: stores, loads: [] },
  ];

  const amounts: number[] = [];
  for (const { job } of kinds) {
    await generator.run(job(Math.ceil(plan.warmUpRequests / 4)));
    const { perSecond } = await generator.run(job(Math.ceil(plan.warmUpRequests / 8)));
    amounts.push(Math.max(CONNECTIONS, Math.round(perSecond * plan.seconds)));
  }
  for (let round = 1; round <= plan.rounds; round++) {
    for (const [index, { job, loads }] of kinds.entries())
      loads.push(await generator.run(job(amounts[index] ?? CONNECTIONS)));
    const rates = kinds.map(({ name, loads }) => `${name} ${Math.round(loads.at(-1)?.perSecond ?? 0)}/s`);
    say(`Writing: round ${round} of ${plan.rounds}: ${rates.join(', ')}`);
  }
  await vault.remove();
  await bare.stop();
  return {
    figures: kinds.flatMap((kind) => figuresOf(kind, plan.rounds)),
    curves: [],
    notes: [
      `Logins: ${target.agents} agents over ${CONNECTIONS} connections. The generator signs on the same cores: it took ${busyOf(kinds[1])} of one beside logins, and ${busyOf(kinds[2])} beside stores.`,
    ],
  };
}

function busyOf(kind: Kind | undefined): string {
  return `${(sumUp(kind?.loads.map(({ busy }) => busy) ?? []).value * 100).toFixed(0)} %`;
}

function figuresOf({ name, floor, loads }: Kind, rounds: number): Figure[] {
  return [
    {
      name,
      unit: '/s',
      rounds,
      ...sumUp(loads.map(({ perSecond }) => perSecond)),
      required: floor === null ? null : { kind: 'at least', limit: floor },
    },
    { name: `${name}, p99`, unit: 'ms', rounds, ...sumUp(loads.map(({ p99Ms }) => p99Ms)), required: null },
  ];
}
