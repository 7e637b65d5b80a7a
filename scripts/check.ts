// `npm test`: runs Biome, tsc and knip, and at the same time the tests. `--tests-only`, or names of test files or
// directories, run only tests; `--test-name-pattern=TEXT` selects tests by name; LEASEHOLD_TEST_STORE selects a store.
// `--unit` runs the directories that need no server, `--long` the tests that `npm test` leaves out, `--weekly` those
// that have rounds, with all of them; `--watch` runs tests again when a file changes. The run succeeds if no test
// failed or was skipped and tests ran on each store. At the end it prints the time of each directory and the failures.

import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { type SharedServer, startSharedServer } from '../test/kit/database.ts';
import { HARDENING } from './flags.mjs';
import { processorSeconds } from './processor.ts';
import { findMemoryDirectory } from './temporary-directory.ts';
import { type Job, jobsFor } from './test-jobs.ts';
import { findTests, needsServer, type Pass, passesFor } from './test-matrix.ts';
import { type JobResult, type RunOptions, runJob } from './test-run.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** The results of tsc for unchanged files. */
const TYPES_CACHE = path.join(ROOT, 'node_modules', '.cache', 'tsc.json');
const CONSOLE_TYPES_CACHE = path.join(ROOT, 'node_modules', '.cache', 'tsc-console.json');
const TOOLS = [
  { name: 'biome', arguments: ['ci', '--error-on-warnings', '--colors=off', '.'] },
  // WHY one thread: each further checker checks the shared types again, and the tests use the other cores.
  { name: 'tsc', arguments: ['--noEmit', '--singleThreaded', '--incremental', '--tsBuildInfoFile', TYPES_CACHE] },
  {
    name: 'tsc',
    arguments: ['--project', 'console', '--singleThreaded', '--incremental', '--tsBuildInfoFile', CONSOLE_TYPES_CACHE],
  },
  { name: 'knip', arguments: [] },
];
/** Tests wait for disks, timers and processes longer than they compute: three processes for each core. */
const JOBS_AT_ONCE = Math.min(6, 3 * availableParallelism());

const stop = new AbortController();
const startedAt = performance.now();

type Tool = (typeof TOOLS)[number];

function runTool(tool: Tool): Promise<boolean> {
  const toolStartedAt = performance.now();
  const file = path.join(ROOT, 'node_modules', '.bin', tool.name);
  const options = { cwd: ROOT, signal: stop.signal, maxBuffer: 2 ** 26 };
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...tool.arguments], options, (error, stdout, stderr) => {
      const seconds = ((performance.now() - toolStartedAt) / 1000).toFixed(1);
      if (!stop.signal.aborted) {
        console.log(`${tool.name.padEnd(6)} ${error ? 'FAILED' : 'ok'} ${seconds} s`);
        if (error) console.log(stdout + stderr || error.message);
      }
      if (error) stop.abort();
      resolve(error === null);
    });
  });
}

/** Runs the work, a limited number at a time, until it is stopped. Resolves to the results. */
async function runAll<T>(work: readonly (() => Promise<T>)[], atOnce: number): Promise<T[]> {
  const results: T[] = [];
  const waiting = work.values();
  const takeAll = async (): Promise<void> => {
    for (const begin of waiting) {
      if (stop.signal.aborted) return;
      results.push(await begin());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, takeAll));
  return results;
}

async function reportJob(job: Job, options: RunOptions): Promise<JobResult> {
  const result = await runJob(job, options);
  if (!stop.signal.aborted) console.log(result.report);
  return result;
}

/** The time of each directory, on both stores together. */
function describeDirectories(results: readonly JobResult[]): string[] {
  const files = results.flatMap((result) => result.files);
  const directories = [...Map.groupBy(files, ({ name }) => path.posix.dirname(name))].toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  return directories.map(([directory, own]) => {
    const sum = (pick: (file: (typeof own)[number]) => number) => own.reduce((total, file) => total + pick(file), 0);
    const [seconds, processor] = [sum((file) => file.seconds), sum((file) => file.processorSeconds)];
    return `${directory.padEnd(16)} ${seconds.toFixed(1).padStart(6)} s ${processor.toFixed(1).padStart(6)} s processor`;
  });
}

/** The summary line of a store: ok if tests ran and all of them passed. */
function describePass({ store, files }: Pass, results: readonly JobResult[]): { isGreen: boolean; line: string } {
  const own = results.filter((result) => result.store === store);
  const tests = own.reduce((total, result) => total + result.tests, 0);
  const isGreen = tests > 0 && own.every((result) => result.isGreen) && !stop.signal.aborted;
  const line = `${store.padEnd(8)} ${tests} tests of ${files.length} files ${isGreen ? 'ok' : 'FAILED'}`;
  return { isGreen, line: tests === 0 ? `✖ no test ran\n${line}` : line };
}

/** Runs the tests, and the tools if requested. Prints the tests that ran on each store, and the time. */
async function runEverything(
  passes: readonly Pass[],
  tools: readonly Tool[],
  options: Omit<RunOptions, 'environment'>,
): Promise<boolean> {
  const server: SharedServer | null = needsServer(passes) ? await startSharedServer() : null;
  try {
    const environment = server?.environment ?? {};
    const results: JobResult[] = [];
    const begin = (job: Job) => async (): Promise<boolean> => {
      const result = await reportJob(job, { ...options, environment });
      results.push(result);
      return result.isGreen;
    };
    const jobs = jobsFor(passes);
    const shared = jobs.filter(({ isAlone }) => !isAlone);
    const alone = jobs.filter(({ isAlone }) => isAlone);
    const verdicts = [
      ...(await runAll([...tools.map((tool) => () => runTool(tool)), ...shared.map(begin)], JOBS_AT_ONCE)),
      ...(await runAll(alone.map(begin), 1)),
    ];
    const summaries = passes.map((pass) => describePass(pass, results));
    if (!options.isVerbose) console.log(`\n${describeDirectories(results).join('\n')}\n`);
    for (const { line } of summaries) console.log(line);
    // WHY again: a reader of a long output begins at its end.
    if (!options.isVerbose)
      for (const { store, failures } of results) for (const failure of failures) console.log(`${store} ${failure}`);
    return verdicts.every(Boolean) && summaries.every(({ isGreen }) => isGreen);
  } finally {
    await server?.end();
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    console.log(`${seconds} s, ${processorSeconds().toFixed(1)} s processor`);
  }
}

/** Runs each file in a separate process, and again when a file that it imports changes, until it is stopped. */
async function watch(files: readonly string[]): Promise<boolean> {
  const stream = run({ files: [...files], cwd: ROOT, execArgv: [...HARDENING], watch: true, signal: stop.signal });
  for await (const text of stream.compose(spec)) process.stdout.write(String(text));
  return true;
}

async function check(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      'tests-only': { type: 'boolean' },
      'test-name-pattern': { type: 'string' },
      unit: { type: 'boolean' },
      long: { type: 'boolean' },
      weekly: { type: 'boolean' },
      watch: { type: 'boolean' },
    },
  });
  const kind = values.weekly ? 'weekly' : values.long ? 'long' : values.unit ? 'unit' : 'usual';
  const files = findTests(positionals, kind);
  if (values.watch) return watch(files);
  const isTestsOnly = values['tests-only'] === true || kind !== 'usual' || positionals.length > 0;
  const namePattern = values['test-name-pattern'];
  const isVerbose = positionals.length > 0 || namePattern !== undefined;
  const passes = passesFor(files, process.env['LEASEHOLD_TEST_STORE'], kind, positionals.length > 0);
  if (kind === 'weekly') process.env['LEASEHOLD_TEST_ALL_ROUNDS'] = '1'; // see test/kit/scale.ts
  // The weekly tests use the disk.
  const memory = kind === 'weekly' ? null : findMemoryDirectory();
  if (memory !== null) process.env['TMPDIR'] ??= memory;
  return runEverything(passes, isTestsOnly ? [] : TOOLS, {
    namePattern,
    isVerbose,
    isLong: kind === 'long' || kind === 'weekly',
    signal: stop.signal,
  });
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
check().then(
  (isGreen) => {
    process.exitCode = isGreen ? 0 : 1;
  },
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  },
);
