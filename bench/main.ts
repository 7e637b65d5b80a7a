// `npm run bench`: measures, part by part, and reports. What it takes and does: `-- --help`.

import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type BenchArguments, parseArguments, USAGE } from './arguments.ts';
import { openScope } from './cleanup.ts';
import { measureCluster } from './cluster.ts';
import { measureCurves } from './curves.ts';
import { measureDecision } from './decision.ts';
import { measureFailover } from './failover.ts';
import { describeGenerator, findWrk, startGenerator } from './generator.ts';
import { measureLarge } from './large.ts';
import { PLANS } from './plan.ts';
import {
  assertWritable,
  describeCommit,
  describeMachine,
  ON_POSTGRES,
  ONE_NODE,
  type Report,
  readLast,
  toJson,
  toText,
  writeReport,
} from './report.ts';
import { measureRetrieval } from './retrieval.ts';
import { measureStart } from './startup.ts';
import { judge, warnOfChange } from './thresholds.ts';
import type { Findings, Part, Stage } from './types.ts';
import { measureLog } from './verification.ts';
import { measureWriting } from './writing.ts';

const ROOT = join(import.meta.dirname, '..');
const DOCS = join(ROOT, 'docs');
const POSTGRES_PARTS: Readonly<Record<string, Part>> = { cluster: measureCluster, failover: measureFailover };
const ONE_NODE_PARTS: Readonly<Record<string, Part>> = {
  start: measureStart,
  retrieval: measureRetrieval,
  writing: measureWriting,
  log: measureLog,
  decision: measureDecision,
  curves: measureCurves,
  large: measureLarge,
};
const NEED_LARGE_VAULTS = ['curves', 'large'];

function readArguments(): BenchArguments {
  try {
    return parseArguments(process.argv.slice(2));
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}\n\n${USAGE}`);
    return process.exit(2);
  }
}

const values = readArguments();
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const asked = (name: string): string => resolve(process.env['INIT_CWD'] ?? '.', name);
const PARTS = values.postgres ? POSTGRES_PARTS : ONE_NODE_PARTS;
const place = values.postgres ? ON_POSTGRES : ONE_NODE;
const plan = PLANS[values.trial ? 'trial' : values.quick ? 'quick' : 'full'];

function chooseParts(): string[] {
  const names = Object.keys(PARTS);
  if (values.only !== undefined) {
    if (!names.includes(values.only)) throw new Error(`--only takes one of ${names.join(', ')}`);
    return [values.only];
  }
  const hasCurves = values.curves === undefined ? plan.name !== 'quick' : values.curves === 'yes';
  return hasCurves ? names : names.filter((name) => !NEED_LARGE_VAULTS.includes(name));
}

/** A run that is not whole would leave a report with holes. */
function chooseFolder(parts: readonly string[]): string | null {
  if (values.write !== undefined) return asked(values.write);
  return plan.name === 'full' && parts.length === Object.keys(PARTS).length ? DOCS : null;
}

/** What can't be done is said before any time is spent. */
function choose(): { parts: string[]; folder: string | null } {
  try {
    const parts = chooseParts();
    const folder = chooseFolder(parts);
    if (folder !== null) assertWritable(folder, place);
    return { parts, folder };
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : error}`);
    return process.exit(2);
  }
}

const scope = openScope();
const startedAt = performance.now();
const say = (line: string): void => {
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  process.stderr.write(`${String(seconds).padStart(5)} s  ${line}\n`);
};

async function measure(parts: readonly string[]): Promise<Findings> {
  const stage: Stage = { scope, say, plan, generator: startGenerator(scope) };
  const findings: Findings[] = [];
  for (const name of parts) {
    say(`Part: ${name}`);
    const part = PARTS[name];
    if (part !== undefined) findings.push(await part(stage));
  }
  return {
    figures: findings.flatMap(({ figures }) => figures),
    curves: findings.flatMap(({ curves }) => curves),
    notes: findings.flatMap(({ notes }) => notes),
  };
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.once(signal, () => void scope.end().finally(() => process.exit(1)));
}
try {
  const { parts, folder } = choose();
  const last = readLast(folder ?? DOCS, place);
  say(`A ${plan.name} run of ${parts.join(', ')}; all of it takes about ${plan.minutes} min.`);
  const { figures, curves, notes } = await measure(parts);
  const generator = describeGenerator(findWrk());
  const report: Report = {
    plan: plan.name,
    date: new Date().toISOString().slice(0, 10),
    commit: describeCommit(ROOT),
    machine: describeMachine(),
    generator,
    figures: judge(figures, last),
    curves,
    notes: [warnOfChange(generator, last), ...notes].filter((note) => note !== null),
  };
  console.log(`\n${toText(report)}`);
  if (values.json !== undefined) writeFileSync(asked(values.json), toJson(report));
  if (folder !== null) writeReport(folder, report, place);
  process.exitCode = report.figures.some(({ isMet }) => isMet === false) ? 1 : 0;
} finally {
  await scope.end();
}
