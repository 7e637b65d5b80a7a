// Retrievals from one, two and three nodes on one PostgreSQL, all on this machine.

import { createClient } from '../test/kit/client.ts';
import { compare } from './compare.ts';
import { type Generator, startGenerator } from './generator.ts';
import { processorSeconds, toFigure } from './measurement.ts';
import { databaseSeconds, type PostgresCluster, startCluster, walBytes } from './postgres-cluster.ts';
import { loadFigures } from './retrieval.ts';
import type { Figure, LoadResult, Stage } from './types.ts';
import { SMALL } from './vault.ts';

const LABELS = ['One node on PostgreSQL', 'Two nodes on PostgreSQL', 'Three nodes on PostgreSQL'] as const;
/** Of all nodes together. */
const CONNECTIONS = 128;
const WARM_UP = 4000;

/** Costs are per retrieval. */
interface Round extends LoadResult {
  readonly nodeMicroseconds: number;
  readonly databaseMicroseconds: number;
  readonly walBytes: number;
}

export async function measureCluster(stage: Stage): Promise<Figure[]> {
  const cluster = await startCluster(stage, LABELS.length);
  const generators = LABELS.map(() => startGenerator(stage.scope));
  const sides = LABELS.map((name, index) => ({
    name,
    run: (amount: number) => runRound(cluster, generators.slice(0, index + 1), amount),
  }));
  const rounds = await compare(stage, sides, { warmUp: WARM_UP, seconds: stage.plan.seconds });
  await assertValidLog(cluster);
  for (const node of cluster.nodes) await node.stop();
  await cluster.server.end();
  const two = rounds[1] ?? [];
  const cost = (measure: string, unit: string, of: (round: Round) => number): Figure =>
    toFigure(`Cost of a retrieval on PostgreSQL, ${measure}`, unit, two.map(of));
  return [
    ...LABELS.flatMap((label, index) => loadFigures(label, rounds[index] ?? [])),
    cost('processor time of the nodes', 'µs', ({ nodeMicroseconds }) => nodeMicroseconds),
    cost('processor time of the database', 'µs', ({ databaseMicroseconds }) => databaseMicroseconds),
    cost('write-ahead log', 'B', (round) => round.walBytes),
  ];
}

/** Full load on as many nodes as there are generators. The percentiles are those of the slowest node. */
async function runRound(
  { server, nodes }: PostgresCluster,
  generators: readonly Generator[],
  amount: number,
): Promise<Round> {
  const busy = nodes.slice(0, generators.length);
  const readCosts = async () => ({
    nodes: busy.reduce((sum, { pid }) => sum + processorSeconds(pid), 0),
    database: await databaseSeconds(server),
    wal: await walBytes(server),
  });
  const before = await readCosts();
  const share = (total: number): number => Math.round(total / generators.length);
  const loads = await Promise.all(
    generators.map((generator, index) => {
      const { credentials, agents } = SMALL;
      const target = { address: busy[index]?.address ?? '', credentials, agents };
      const job = { connections: share(CONNECTIONS), amount: share(amount) };
      return generator.run({ kind: 'retrievals', target, ...job });
    }),
  );
  const after = await readCosts();
  const answered = loads.reduce((sum, load) => sum + load.answered, 0);
  return {
    answered,
    perSecond: loads.reduce((sum, { perSecond }) => sum + perSecond, 0),
    p50Ms: Math.max(...loads.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...loads.map(({ p99Ms }) => p99Ms)),
    nodeMicroseconds: ((after.nodes - before.nodes) / answered) * 1e6,
    databaseMicroseconds: ((after.database - before.database) / answered) * 1e6,
    walBytes: (after.wal - before.wal) / answered,
  };
}

async function assertValidLog({ nodes: [node] }: PostgresCluster): Promise<void> {
  if (node === undefined) return;
  const { body, text } = await createClient(node.address, node.adminToken).get('/api/v1/audit/verify');
  if (body?.data?.valid !== true) throw new Error(`the log does not verify: ${text}`);
}
