// Everything that is checked, in one command: Biome, tsc and knip side by side, then the tests, on one store after the other.
// `--tests-only`, or names of test files or folders, run tests alone; `--test-name-pattern=TEXT` narrows them by name; with
// LEASEHOLD_TEST_STORE they run on that store alone. Green means that nothing failed, nothing was skipped and something ran on
// each store; it ends with a line a store.

import { execFile } from 'node:child_process';
import { existsSync, globSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { parseArgs } from 'node:util';
import { type RunServer, startRunServer } from '../test/kit/database.ts';
import { HARDENING } from './flags.mjs';
import { needsServer, type Pass, passesFor, type StoreName } from './test-matrix.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const TOOLS = [
  { name: 'biome', arguments: ['ci', '--error-on-warnings', '--colors=off', '.'] },
  { name: 'tsc', arguments: ['--noEmit'] },
  { name: 'knip', arguments: [] },
];
// Tests that wait for disks and processes leave a core idle: one file more than there are cores, and the one that waits longest,
// for real time-outs, before all others.
const FILES_AT_ONCE = Math.min(4, availableParallelism() + 1);
const WAITS_LONGEST = path.join('hostile', 'slow.test.ts');
const FILE_TIMEOUT_MS = process.env['SLOW'] ? Number.POSITIVE_INFINITY : 5 * 60_000;

const stop = new AbortController();

type Tool = (typeof TOOLS)[number];

function runTool(tool: Tool): Promise<boolean> {
  const startedAt = performance.now();
  const file = path.join(ROOT, 'node_modules', '.bin', tool.name);
  const options = { cwd: ROOT, signal: stop.signal, maxBuffer: 2 ** 26 };
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...tool.arguments], options, (error, stdout, stderr) => {
      const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
      if (!stop.signal.aborted) {
        console.log(`${tool.name.padEnd(6)} ${error ? 'FAILED' : 'ok'} ${seconds} s`);
        if (error) console.log(stdout + stderr || error.message);
      }
      if (error) stop.abort();
      resolve(error === null);
    });
  });
}

async function runTools(): Promise<boolean> {
  const passed = await Promise.all(TOOLS.map(runTool));
  return passed.every(Boolean);
}

/** Relative names are meant from where the person stood when npm was called, else from the top of the project. */
function findTests(names: readonly string[]): string[] {
  if (names.length === 0) return globSync('test/**/*.test.ts', { cwd: ROOT }).map((name) => path.join(ROOT, name));
  return names.flatMap((name) => {
    const file = [process.env['INIT_CWD'] ?? '.', ROOT].map((from) => path.resolve(from, name)).find(existsSync);
    if (file === undefined) throw new Error(`no such test: ${name}`);
    if (!statSync(file).isDirectory()) return [file];
    return globSync('**/*.test.ts', { cwd: file }).map((found) => path.join(file, found));
  });
}

interface Result {
  readonly store: StoreName;
  readonly isGreen: boolean;
  /** For people. */
  readonly line: string;
}

function runPass({ store, files }: Pass, server: RunServer | null, namePattern: string | undefined): Promise<Result> {
  const startedAt = performance.now();
  delete process.env['NODE_TEST_CONTEXT']; // set when a test runs this file: node:test would then run nothing
  const stream = run({
    env: { ...process.env, ...server?.environment, LEASEHOLD_TEST_STORE: store },
    files: files.toSorted().toSorted((a, b) => Number(b.endsWith(WAITS_LONGEST)) - Number(a.endsWith(WAITS_LONGEST))),
    cwd: ROOT,
    execArgv: [...HARDENING],
    concurrency: FILES_AT_ONCE,
    timeout: FILE_TIMEOUT_MS,
    signal: stop.signal,
    ...(namePattern === undefined ? {} : { testNamePatterns: namePattern }),
  });
  let isGreen = true;
  let tests = 0;
  const refuse = (line: string): void => {
    isGreen = false;
    console.log(`✖ ${line}`);
  };
  const refuseSkipped = (test: {
    name: string;
    file?: string;
    skip?: string | boolean;
    todo?: string | boolean;
  }): void => {
    const state = test.skip !== undefined ? 'skipped' : test.todo !== undefined ? 'todo' : undefined;
    const where = path.relative(ROOT, test.file ?? ROOT);
    if (state !== undefined) refuse(`${state}, and nothing here may be: "${test.name}" (${where})`);
  };
  stream.on('test:pass', refuseSkipped);
  stream.on('test:fail', refuseSkipped);
  stream.on('test:summary', (summary) => {
    if (summary.file !== undefined) return; // one file's; the last one is of them all
    if (!summary.success) isGreen = false;
    tests = summary.counts.tests;
    if (tests === 0) refuse('no test ran');
  });
  return new Promise((resolve, reject) => {
    stream
      .compose(spec)
      .on('error', reject)
      .on('end', () => {
        const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
        const line = `${tests} tests of ${files.length} files ${isGreen ? 'ok' : 'FAILED'} ${seconds} s`;
        resolve({ store, isGreen, line });
      })
      .pipe(process.stdout, { end: false });
  });
}

/** All passes, whatever becomes of the first, and then what ran where. */
async function runTests(passes: readonly Pass[], namePattern: string | undefined): Promise<boolean> {
  const server = needsServer(passes) ? await startRunServer() : null;
  try {
    const results: Result[] = [];
    for (const pass of passes) {
      if (!stop.signal.aborted) results.push(await runPass(pass, server, namePattern));
    }
    for (const { store, line } of results) console.log(`${store.padEnd(8)} ${line}`);
    return results.length === passes.length && results.every(({ isGreen }) => isGreen);
  } finally {
    await server?.end();
  }
}

async function check(): Promise<boolean> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'tests-only': { type: 'boolean' }, 'test-name-pattern': { type: 'string' } },
  });
  const passes = passesFor(findTests(positionals), process.env['LEASEHOLD_TEST_STORE']);
  const isTestsOnly = values['tests-only'] === true || positionals.length > 0;
  return (isTestsOnly || (await runTools())) && (await runTests(passes, values['test-name-pattern']));
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
