// `npm run bench`: runs the parts and reports their figures. `-- --help` lists the flags.

import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { measureApprovals } from './approvals.ts';
import { parseArguments, USAGE } from './arguments.ts';
import { measureCluster } from './cluster.ts';
import { measureConsole } from './console.ts';
import { measureDecision } from './decision.ts';
import { measureFailover } from './failover.ts';
import { describeGenerator, startGenerator } from './generator.ts';
import { measureLarge } from './large.ts';
import { measureLog } from './log.ts';
import { PLANS } from './plan.ts';
import { measureProofs, measureProofsOnPostgres } from './proofs.ts';
import {
  describeCommit,
  describeMachine,
  type Run,
  readReport,
  replaceTable,
  toJson,
  toTable,
  toText,
} from './report.ts';
import { measureRetrieval } from './retrieval.ts';
import { measureStart } from './start.ts';
import type { Figure, Part, Stage } from './types.ts';
import { measureUse } from './use.ts';
import { measureWrites } from './write.ts';

const ROOT = join(import.meta.dirname, '..');
const COMMITTED = join(ROOT, 'docs/performance.json');
const PAGE = join(ROOT, 'docs/performance.md');
const PARTS: Readonly<Record<'sqlite' | 'postgres', Readonly<Record<string, Part>>>> = {
  sqlite: {
    start: measureStart,
    retrieval: measureRetrieval,
    use: measureUse,
    write: measureWrites,
    log: measureLog,
    proofs: measureProofs,
    decision: measureDecision,
    large: measureLarge,
    console: measureConsole,
  },
  postgres: {
    cluster: measureCluster,
    failover: measureFailover,
    approvals: measureApprovals,
    proofs: measureProofsOnPostgres,
  },
};
/** A quick run omits them, because they take minutes. */
const LONG = ['large', 'proofs', 'console', 'approvals'];

function readArguments() {
  try {
    const values = parseArguments(process.argv.slice(2));
    const store = values.postgres ? 'postgres' : 'sqlite';
    const names = Object.keys(PARTS[store]);
    if (values.only !== undefined && !names.includes(values.only)) {
      throw new Error(`--only must be one of ${names.join(', ')}`);
    }
    const plan = PLANS[values.trial ? 'trial' : values.quick ? 'quick' : 'full'];
    const usual = names.filter((name) => !values.quick || !LONG.includes(name));
    const selected = values.only === undefined ? usual : [values.only];
    const json = values.json === undefined ? null : resolve(process.env['INIT_CWD'] ?? '.', values.json);
    return { ...values, store, plan, selected, json } as const;
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return process.exit(2);
  }
}

const { store, plan, selected, json, help, page } = readArguments();
if (help) console.log(USAGE);
else if (page) replaceTable(PAGE, toTable(readReport(COMMITTED)));
else await run();

async function run(): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  // Leaving this function cleans up.
  const interruption = Promise.withResolvers<never>();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interruption.reject(new Error(`interrupted by ${signal}`)));
  }
  const startedAt = performance.now();
  const say = (line: string): void => {
    const seconds = Math.round((performance.now() - startedAt) / 1000);
    process.stderr.write(`${String(seconds).padStart(5)} s  ${line}\n`);
  };
  const scope = { after: (task: () => unknown) => cleanup.defer(async () => void (await task())) };
  const stage: Stage = { scope, say, plan, generator: startGenerator(scope) };
  const figures = await Promise.race([measure(stage), interruption.promise]);
  const measured: Run = {
    plan: plan.name,
    date: new Date().toISOString().slice(0, 10),
    commit: describeCommit(ROOT),
    machine: describeMachine(),
    generator: describeGenerator(),
    figures,
  };
  console.log(`\n${toText(measured, readReport(COMMITTED)[store])}`);
  if (json !== null) writeFileSync(json, toJson({ ...readReport(json), [store]: measured }));
}

async function measure(stage: Stage): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const name of selected) {
    stage.say(`Part: ${name}`);
    figures.push(...((await PARTS[store][name]?.(stage)) ?? []));
  }
  return figures;
}
