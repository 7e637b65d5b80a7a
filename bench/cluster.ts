// Several nodes on one PostgreSQL, generator included on the same machine: how many retrievals together, how that grows with the
// nodes, and what one costs by the database's own statistics.

import { BenchCluster } from './bench-cluster.ts';
import { SMALL } from './bench-vault.ts';
import { entriesPerSecond, fitCost } from './chain-limit.ts';
import { type Generator, startGenerator } from './generator.ts';
import type { LoadResult } from './loads.ts';
import { processorSeconds, sumUp } from './measure.ts';
import { type DatabaseWork, readStatistics, resetStatistics, slowestStatements } from './statistics.ts';
import type { Curve, Figure, Findings, Measure, Stage } from './types.ts';

const NODES = 3;
const CONNECTIONS = 128;
const WARM_UP = 4000;

interface Round {
  readonly perSecond: number;
  readonly p50Ms: number;
  /** The worst of the nodes. */
  readonly p99Ms: number;
  readonly work: DatabaseWork;
  readonly answered: number;
  /** Processor time of one retrieval, in microseconds. */
  readonly nodesMicroseconds: number;
  readonly databaseMicroseconds: number;
}

export async function measureCluster(stage: Stage): Promise<Findings> {
  const { plan, say, scope } = stage;
  const cluster = await BenchCluster.start(stage, NODES, SMALL);
  const generators = Array.from({ length: NODES }, () => startGenerator(scope));
  const play = (nodes: number, connections: number, amount: number): Promise<Round> =>
    playRound(cluster, generators.slice(0, nodes), connections, amount);
  const amounts = new Map<number, number>();
  for (const nodes of [1, 2, 3]) {
    await play(nodes, CONNECTIONS, WARM_UP);
    const { perSecond } = await play(nodes, CONNECTIONS, WARM_UP);
    amounts.set(nodes, Math.round(perSecond * plan.seconds));
  }
  const rounds = new Map<number, Round[]>([1, 2, 3].map((nodes) => [nodes, []]));
  for (let number = 1; number <= plan.rounds; number++) {
    const said: string[] = [];
    for (const nodes of number % 2 === 1 ? [1, 2, 3] : [3, 2, 1]) {
      const round = await play(nodes, CONNECTIONS, amounts.get(nodes) ?? WARM_UP);
      rounds.get(nodes)?.push(round);
      said.push(`${nodes} ${nodes === 1 ? 'node' : 'nodes'} ${Math.round(round.perSecond)}/s`);
    }
    say(`Retrieval on PostgreSQL: round ${number} of ${plan.rounds}: ${said.join(', ')}`);
  }
  const byConnections: [number, Round[]][] = [];
  for (const connections of [2, 8, 32, CONNECTIONS, 512]) {
    const played: Round[] = [];
    for (let number = 0; number < Math.min(3, plan.rounds); number++) {
      played.push(await play(2, connections, Math.max(connections * 20, WARM_UP)));
    }
    byConnections.push([connections, played]);
  }
  await resetStatistics(cluster.server);
  const { answered } = await play(2, CONNECTIONS, amounts.get(2) ?? WARM_UP);
  const slowest = await slowestStatements(cluster.server, answered);
  await assertWhole(cluster);
  await cluster.stop();
  return toFindings(rounds, byConnections, slowest, plan.rounds);
}

async function playRound(
  cluster: BenchCluster,
  generators: readonly Generator[],
  connections: number,
  amount: number,
): Promise<Round> {
  const nodes = cluster.nodes.slice(0, generators.length);
  const ofNodes = (): number => nodes.reduce((sum, { pid }) => sum + (processorSeconds(pid) ?? Number.NaN), 0);
  await resetStatistics(cluster.server);
  const [nodesBefore, databaseBefore] = [ofNodes(), await cluster.databaseSeconds()];
  const loads: LoadResult[] = await Promise.all(
    nodes.map(async (node, index) => {
      const generator = generators[index];
      if (generator === undefined) throw new Error('a node without a generator');
      const job = { connections: connections / nodes.length, amount: Math.ceil(amount / nodes.length) };
      return generator.run({
        kind: 'full',
        target: cluster.targetOf(node),
        connections: Math.max(1, Math.round(job.connections)),
        amount: job.amount,
      });
    }),
  );
  const work = await readStatistics(cluster.server);
  const answered = loads.reduce((sum, load) => sum + load.answered, 0);
  const each = (seconds: number): number => (seconds / answered) * 1e6;
  return {
    perSecond: loads.reduce((sum, load) => sum + load.perSecond, 0),
    p50Ms: Math.max(...loads.map(({ p50Ms }) => p50Ms)),
    p99Ms: Math.max(...loads.map(({ p99Ms }) => p99Ms)),
    work,
    answered,
    nodesMicroseconds: each(ofNodes() - nodesBefore),
    databaseMicroseconds: each((await cluster.databaseSeconds()) - databaseBefore),
  };
}

/** The chain of all that was retrieved is whole. */
async function assertWhole({ nodes }: BenchCluster): Promise<void> {
  const [node] = nodes;
  const response = await fetch(`${node?.address}/api/v1/audit/verify`, {
    headers: { authorization: `Bearer ${node?.adminToken}` },
  });
  const verdict = await response.text();
  if (!verdict.includes('"valid":true')) throw new Error(`the chain is broken: ${verdict}`);
}

function toFindings(
  byNodes: ReadonlyMap<number, readonly Round[]>,
  byConnections: readonly (readonly [number, readonly Round[]])[],
  slowest: readonly string[],
  count: number,
): Findings {
  const of = (rounds: readonly Round[], get: (round: Round) => number): Measure => sumUp(rounds.map(get));
  const figure = (name: string, unit: string, measure: Measure, required: Figure['required'] = null): Figure => ({
    name,
    unit,
    rounds: count,
    ...measure,
    required,
  });
  const two = byNodes.get(2) ?? [];
  const at = `${CONNECTIONS} connections`;
  const perRetrieval = (get: (work: DatabaseWork) => number) => of(two, ({ work, answered }) => get(work) / answered);
  const curve = (name: string, title: string, xLabel: string, points: Curve['series'][number]['points']): Curve => ({
    name,
    title,
    xLabel,
    yLabel: 'retrievals a second',
    isLogarithmic: false,
    series: [{ name: 'together', points }],
  });
  return {
    figures: [
      figure(
        `Two nodes, ${at}, rate`,
        '/s',
        of(two, ({ perSecond }) => perSecond),
        { kind: 'at least', limit: 10_000 },
      ),
      figure(
        `Two nodes, ${at}, p99`,
        'ms',
        of(two, ({ p99Ms }) => p99Ms),
        { kind: 'at most', limit: 60 },
      ),
      figure(
        `Two nodes, ${at}, p50`,
        'ms',
        of(two, ({ p50Ms }) => p50Ms),
      ),
      ...[1, 3].map((nodes) => {
        const name = nodes === 1 ? 'One node' : 'Three nodes';
        return figure(
          `${name}, ${at}, rate`,
          '/s',
          of(byNodes.get(nodes) ?? [], ({ perSecond }) => perSecond),
        );
      }),
      figure(
        'A retrieval in the database: statements',
        'µs',
        perRetrieval(({ workMs }) => workMs * 1000),
      ),
      figure(
        'A turn: sync of the write-ahead log',
        'ms',
        // A server tells of them now and then: a short round may have none.
        of(
          two.filter(({ work }) => work.syncs > 0),
          ({ work }) => work.syncMs / work.syncs,
        ),
      ),
      figure(
        'A retrieval in the database: write-ahead log',
        'B',
        perRetrieval(({ walBytes }) => walBytes),
      ),
      figure(
        'A retrieval, processor time of the database',
        'µs',
        of(two, (round) => round.databaseMicroseconds),
      ),
      figure(
        'A retrieval, processor time of the nodes',
        'µs',
        of(two, (round) => round.nodesMicroseconds),
      ),
      figure(
        'Two nodes, turns',
        '/s',
        of(two, ({ work, answered, perSecond }) => (work.turns / answered) * perSecond),
      ),
      figure(
        'Two nodes, entries in a turn',
        '',
        of(two, ({ work, answered }) => answered / work.turns),
      ),
    ],
    curves: [
      curve(
        'postgres-nodes',
        'Retrievals a second by the number of nodes',
        'nodes',
        [...byNodes].map(([x, rounds]) => ({ x, ...of(rounds, ({ perSecond }) => perSecond) })),
      ),
      curve(
        'postgres-connections',
        'Retrievals a second of two nodes by connections',
        'connections',
        byConnections.map(([x, rounds]) => ({ x, ...of(rounds, ({ perSecond }) => perSecond) })),
      ),
    ],
    notes: [chainNote(byConnections), 'By pg_stat_statements, with two nodes:', ...slowest],
  };
}

/** Two nodes at so many connections keep the lock busy from 32 on: a turn begins where the one before ends. */
function chainNote(byConnections: readonly (readonly [number, readonly Round[]])[]): string {
  const turns = byConnections
    .filter(([connections]) => connections >= 8)
    .flatMap(([, rounds]) => rounds)
    .map(({ work, answered, perSecond }) => {
      const entries = answered / work.turns;
      return { entries, ms: (entries * 1000) / perSecond };
    });
  const cost = fitCost(turns);
  const limits = [16, 64, 256].map((entries) => `${Math.round(entriesPerSecond(cost, entries))}/s with ${entries}`);
  return `A turn took ${cost.turnMs.toFixed(2)} ms, and ${(cost.entryMs * 1000).toFixed(0)} µs more for each of its entries: one chain's limit on this machine is ${limits.join(', ')} entries in a turn.`;
}
