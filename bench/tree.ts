// What the Merkle tree and its checkpoints cost: the service next to one without them, in alternating rounds.

import { compare, rateRatios } from './compare.ts';
import { processorSeconds, toFigure } from './measurement.ts';
import { databaseSeconds, startCluster } from './postgres-cluster.ts';
import { CONNECTIONS } from './retrieval.ts';
import type { Figure, LoadJob, LoadResult, Stage, Target } from './types.ts';
import { createVault, openVault, removeVault, SMALL } from './vault.ts';

const WITHOUT_TREE = import.meta.resolve('./without-tree.ts');
const VARIANTS = ['without', 'with'] as const;
/** WHY many and short: the difference is smaller than what other work on the machine changes from one to the next. */
const ROUNDS_FACTOR = 4;
const SECONDS_FACTOR = 0.4;

interface Variant {
  readonly name: (typeof VARIANTS)[number];
  readonly target: Target;
  readonly adminToken: string;
  /** Processor time of the service, and of the database if it is another process. */
  processorSeconds(): Promise<number>;
}

interface Round extends LoadResult {
  readonly cpuMicroseconds: number;
}

export async function measureTree(stage: Stage): Promise<Figure[]> {
  const vaults = [];
  for (const name of VARIANTS) {
    const dataDir = await createVault(stage, SMALL);
    vaults.push({ name, vault: await openVault(stage, dataDir, SMALL, name === 'with' ? null : WITHOUT_TREE) });
  }
  const variants = vaults.map(({ name, vault: { service, target } }) => ({
    name,
    target,
    adminToken: service.adminToken,
    processorSeconds: async () => processorSeconds(service.pid),
  }));
  const figures = await measureVariants(stage, variants, '');
  for (const { vault } of vaults) await removeVault(vault);
  return figures;
}

export async function measureTreeOnPostgres(stage: Stage): Promise<Figure[]> {
  const clusters = [];
  for (const name of VARIANTS) {
    clusters.push({ name, ...(await startCluster(stage, 1, name === 'with' ? null : WITHOUT_TREE)) });
  }
  const variants = clusters.flatMap(({ name, server, nodes }) =>
    nodes.map(({ address, adminToken, pid }) => ({
      name,
      target: { address, credentials: SMALL.credentials, agents: SMALL.agents },
      adminToken,
      processorSeconds: async () => processorSeconds(pid) + (await databaseSeconds(server)),
    })),
  );
  const figures = await measureVariants(stage, variants, ' on PostgreSQL');
  for (const { server, nodes } of clusters) {
    for (const node of nodes) await node.stop();
    await server.end();
  }
  return figures;
}

async function measureVariants(stage: Stage, variants: readonly Variant[], where: string): Promise<Figure[]> {
  const loads = [
    ['Stores', storesOf(), CONNECTIONS],
    ['Retrieval', retrievalsOf, CONNECTIONS],
    ['Retrieval', retrievalsOf, 1],
  ] as const;
  const figures: Figure[] = [];
  for (const [what, jobOf, connections] of loads) {
    const label = `${what} with the tree relative to without${where}, ${connections} connection${connections > 1 ? 's' : ''}`;
    figures.push(...(await measureLoad(stage, variants, label, connections, jobOf)));
  }
  return figures;
}

type JobOf = (variant: Variant, connections: number, amount: number) => LoadJob;

const retrievalsOf: JobOf = ({ target }, connections, amount) => ({ kind: 'retrievals', target, connections, amount });

/** Each variant has its own vault, so both can store the same new paths. */
function storesOf(): JobOf {
  const next = new Map<Variant, number>();
  return (variant, connections, amount) => {
    const first = next.get(variant) ?? SMALL.credentials;
    next.set(variant, first + amount);
    return { kind: 'stores', target: variant.target, adminToken: variant.adminToken, connections, first, amount };
  };
}

async function measureLoad(
  stage: Stage,
  variants: readonly Variant[],
  label: string,
  connections: number,
  jobOf: JobOf,
): Promise<Figure[]> {
  const { plan, generator, say } = stage;
  say(label);
  const sides = variants.map((variant) => ({
    name: variant.name,
    async run(amount: number): Promise<Round> {
      const before = await variant.processorSeconds();
      const load = await generator.run(jobOf(variant, connections, Math.max(amount, connections)));
      return { ...load, cpuMicroseconds: (((await variant.processorSeconds()) - before) / load.answered) * 1e6 };
    },
  }));
  const rules = {
    warmUp: Math.ceil(plan.warmUpRequests / (connections === 1 ? 20 : 4)),
    seconds: plan.seconds * SECONDS_FACTOR,
  };
  const rounds = { ...plan, rounds: ROUNDS_FACTOR * plan.rounds };
  const [without = [], measured = []] = await compare({ ...stage, plan: rounds }, sides, rules);
  const cost = measured.map(
    ({ cpuMicroseconds }, at) => cpuMicroseconds / (without[at]?.cpuMicroseconds ?? Number.NaN),
  );
  return [
    toFigure(`${label}, rate`, '', rateRatios(measured, without)),
    toFigure(`${label}, processor time`, '', cost),
  ];
}
