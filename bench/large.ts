// The log's curve, and then everything at once: after the log has its last size, credentials and policies come to it. Start,
// verification and queries are measured before any load falls on the vault.

import { BenchVault, SMALL } from './bench-vault.ts';
import { growthFigures, measureBesideSmall, measureGrowth, ratioCurve } from './curves.ts';
import { sumUp } from './measure.ts';
import { measureQueries } from './queries.ts';
import { timeStart } from './startup.ts';
import type { Curve, Figure, Findings, Measure, Point, Stage } from './types.ts';
import { measureRate } from './verification.ts';

const PLAIN = { unit: '', required: null } as const;
const xLabel = 'audit entries';
const many = (count: number): string => count.toLocaleString('en-US');

export async function measureLarge(stage: Stage): Promise<Findings> {
  const { plan, say } = stage;
  const { rounds } = plan;
  const starts: Point[] = [];
  const rates: Point[] = [];
  const queries = new Map<string, Point[]>();
  const perEntry: number[] = [];
  let before = { entries: 0, bytes: 0 };

  const { points, last: vault } = await measureGrowth(
    stage,
    { dimension: 'entries', sizes: plan.curves.entries, base: SMALL },
    async (grown, entries) => {
      perEntry.push((grown.bytesWhenGrown - before.bytes) / (entries - before.entries));
      starts.push({ x: entries, ...(await measureStarts(stage, grown)) });
      rates.push({ x: entries, ...(await measureRate(stage, grown, entries > 1_000_000 ? 3 : plan.verifications)) });
      for (const { name, value, low, high } of await measureQueries(stage, grown)) {
        queries.set(name, [...(queries.get(name) ?? []), { x: entries, value, low, high }]);
      }
      before = { entries, bytes: grown.bytesWhenGrown };
    },
  );

  const [credentials, policies] = [plan.curves.credentials.at(-1) ?? 0, plan.curves.policies.at(-1) ?? 0];
  const entries = Math.max(await vault.countEntries(), plan.curves.entries.at(-1) ?? 0);
  await vault.grow({ ...vault.sizes, credentials, policies, entries });
  await vault.start();
  const start = await measureStarts(stage, vault);
  const small = await BenchVault.start(stage, SMALL);
  const all = await measureBesideSmall(stage, small, vault, 'all at once');
  await small.remove();
  await vault.remove();
  say(`All at once: start ${start.value.toFixed(0)} ms, ${all.memoryMiB.toFixed(0)} MiB under full load`);

  const size = `${many(credentials)} credentials, ${many(policies)} policies, ${many(plan.curves.entries.at(-1) ?? 0)} entries`;
  const figures: Figure[] = [
    ...growthFigures('entries', points, rounds),
    {
      ...PLAIN,
      ...all,
      name: `Retrieval with all at once, of the small service`,
      rounds,
      required: { kind: 'at least', limit: 0.9 },
    },
    {
      name: 'Memory under full load, all at once',
      unit: 'MiB',
      rounds: 1,
      ...sumUp([all.memoryMiB]),
      required: { kind: 'at most', limit: 300 },
    },
    {
      name: 'Start to ready, all at once',
      unit: 'ms',
      rounds: plan.starts,
      ...start,
      required: { kind: 'at most', limit: 1000 },
    },
    { name: 'Bytes on disk for an entry', unit: 'B', rounds: 1, ...sumUp(perEntry.slice(-1)), required: null },
  ];
  return {
    figures: figures.map(toFigure),
    curves: [ratioCurve('entries', points), ...logCurves(starts, rates, queries)],
    notes: [`All at once: ${size}. Files are in the system's cache when the service starts.`],
  };
}

async function measureStarts(stage: Stage, vault: BenchVault): Promise<Measure> {
  const times: number[] = [];
  await vault.stop();
  for (let number = 0; number < stage.plan.starts; number++) times.push(await timeStart(stage, vault.dataDir));
  await vault.start();
  return sumUp(times);
}

/** Without what a measure may carry along. */
function toFigure({ name, unit, value, low, high, rounds, required }: Figure): Figure {
  return { name, unit, value, low, high, rounds, required };
}

function logCurves(starts: Point[], rates: Point[], queries: ReadonlyMap<string, Point[]>): Curve[] {
  return [
    {
      name: 'start',
      title: 'Start to ready by the length of the log',
      xLabel,
      yLabel: 'milliseconds',
      isLogarithmic: false,
      series: [{ name: 'start', points: starts }],
    },
    {
      name: 'verification',
      title: 'Verification by the length of the log',
      xLabel,
      yLabel: 'entries a second',
      isLogarithmic: false,
      series: [{ name: 'verification', points: rates }],
    },
    {
      name: 'queries',
      title: 'Audit queries by the length of the log',
      xLabel,
      yLabel: 'milliseconds',
      isLogarithmic: true,
      series: [...queries].map(([name, points]) => ({ name, points })),
    },
  ];
}
