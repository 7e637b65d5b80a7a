/** Runs jobs of test files, each in a separate process, and reports a line per file and every failure. */
import path from 'node:path';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';
import { inspect } from 'node:util';
import { HARDENING } from './flags.mjs';
import type { Job } from './test-jobs.ts';
import type { StoreName } from './test-matrix.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
const GROUP = path.join(import.meta.dirname, 'test-group.ts');
/** When a file, and when a process with all of its files, counts as hanging. Both are enough for any slow machine. */
const USUAL_LIMITS = { fileMs: 15 * 60_000, processMs: 30 * 60_000 };
const LONG_LIMITS = { fileMs: 30 * 60_000, processMs: 45 * 60_000 };

export interface FileResult {
  readonly name: string;
  readonly tests: number;
  readonly seconds: number;
  readonly processorSeconds: number;
}

export interface JobResult {
  readonly store: StoreName;
  readonly isGreen: boolean;
  readonly tests: number;
  readonly files: readonly FileResult[];
  /** The output to print. */
  readonly report: string;
  /** The failures, with their errors. */
  readonly failures: readonly string[];
}

export interface RunOptions {
  readonly environment: Readonly<Record<string, string>>;
  /** Runs only tests of these names. */
  readonly namePattern: string | undefined;
  /** Reports every test, not only files and failures. */
  readonly isVerbose: boolean;
  /** Whether the tests are those that `npm test` leaves out. */
  readonly isLong: boolean;
  readonly signal: AbortSignal;
}

interface TestEvent {
  readonly name: string;
  readonly nesting: number;
  readonly file?: string;
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
  readonly details: { readonly duration_ms: number; readonly type?: string; readonly error?: Error };
}

export async function runJob({ store, files }: Job, options: RunOptions): Promise<JobResult> {
  const { namePattern, isVerbose, isLong } = options;
  const { fileMs, processMs } = isLong ? LONG_LIMITS : USUAL_LIMITS;
  // A name pattern applies to the tests of a file, so each file runs directly.
  const isGrouped = namePattern === undefined;
  delete process.env['NODE_TEST_CONTEXT']; // set when a test runs this code: node:test would then run nothing
  const stream = run({
    env: { ...process.env, ...options.environment, LEASEHOLD_TEST_STORE: store },
    cwd: ROOT,
    execArgv: [...HARDENING],
    concurrency: 1,
    timeout: fileMs,
    // WHY also the process: after a file that hangs, its open handles can keep the process from ending.
    signal: AbortSignal.any([options.signal, AbortSignal.timeout(processMs)]),
    ...(isGrouped ? { files: [GROUP], argv: [...files] } : { files: [...files], testNamePatterns: namePattern }),
  });
  let isGreen = true;
  let [tests, testsOfFile] = [0, 0];
  const results: FileResult[] = [];
  const lines: string[] = [];
  const printed: string[] = [];
  const refuse = (line: string): void => {
    isGreen = false;
    lines.push(`✖ ${line}`);
  };
  const fail = (event: TestEvent): void => {
    isGreen = false;
    if (!isVerbose) lines.push(`✖ ${describeFailure(event)}`); // else it is in the detailed report
  };
  const count = (event: TestEvent, hasPassed: boolean): void => {
    const { name, nesting, file = ROOT, details } = event;
    const state = event.skip !== undefined ? 'skipped' : event.todo !== undefined ? 'todo' : undefined;
    if (state !== undefined) refuse(`${state}, and nothing here may be: "${name}" (${path.relative(ROOT, file)})`);
    if (!hasPassed) fail(event);
    if (isGrouped && nesting === 0) {
      const seconds = details.duration_ms / 1000;
      results.push({ name, tests: testsOfFile, seconds, processorSeconds: 0 });
      testsOfFile = 0;
    } else if (details.type !== 'suite') {
      tests += 1;
      testsOfFile += 1;
    }
  };
  stream.on('test:pass', (event) => count(event as TestEvent, true));
  stream.on('test:fail', (event) => count(event as TestEvent, false));
  stream.on('test:stdout', ({ message }) => printed.push(message));
  stream.on('test:stderr', ({ message }) => printed.push(message));
  stream.on('test:diagnostic', ({ message }) => {
    // An error after the last test fails the process, and only this output names it.
    if (message.startsWith('Error: ')) printed.push(`${message}\n`);
    const found = /^processor ([\d.]+)$/.exec(message)?.[1];
    const last = results.pop();
    if (last !== undefined) results.push(found === undefined ? last : { ...last, processorSeconds: Number(found) });
  });
  let detailed = '';
  if (isVerbose) for await (const text of stream.compose(spec)) detailed += String(text);
  else for await (const _ of stream);
  if (tests === 0) refuse('no test ran');
  const report = isVerbose
    ? [detailed.trimEnd(), ...lines].join('\n')
    : [...results.map((result) => toLine(store, result)), ...(isGreen ? [] : [...printed, ...lines])].join('\n');
  return { store, isGreen, tests, files: results, report, failures: lines };
}

function toLine(store: StoreName, { name, tests, seconds, processorSeconds }: FileResult): string {
  const times = `${seconds.toFixed(1).padStart(6)} s ${processorSeconds.toFixed(1).padStart(6)} s processor`;
  return `${store.padEnd(8)} ${times} ${String(tests).padStart(5)} tests  ${name}`;
}

/** The test with its file and its error; only its name if the error is that of a subtest. */
function describeFailure({ name, file = ROOT, details }: TestEvent): string {
  const { error } = details;
  const isOfSubtest = (error as { failureType?: string } | undefined)?.failureType === 'subtestsFailed';
  const place = `${name} (${path.relative(ROOT, file)})`;
  if (isOfSubtest) return place;
  const { exitCode, signal } = (error ?? {}) as { exitCode?: number | null; signal?: string | null };
  const end = exitCode === undefined ? '' : `\n    the process ended with exit code ${exitCode}, signal ${signal}`;
  return `${place}\n${inspect(error?.cause ?? error).replace(/^/gm, '    ')}${end}`;
}
