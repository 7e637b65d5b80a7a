/**
 * Runs the real service so that chosen system calls on its data directory fail, or all changes are recorded. Where the
 * kernel allows it, supervisor.py answers the calls of every thread, SQLite's too. Elsewhere (macOS, containers without
 * seccomp) preloaded-faults.ts is loaded into the service and fails the calls of node:fs and node:sqlite instead.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../kit/directory.ts';
import { type LaunchedProcess, launchProcess } from '../kit/process.ts';

const SUPERVISOR = join(import.meta.dirname, 'supervisor.py');
const PRELOADED = join(import.meta.dirname, 'preloaded-faults.ts');

export type ErrorName = 'EIO' | 'ENOSPC' | 'EDQUOT' | 'EROFS' | 'EMFILE';

/** Which calls fail. */
export interface CallFault {
  /** Their names; empty counts all calls, and none fails. */
  readonly calls: readonly string[];
  readonly error: ErrorName;
  /** Calls that succeed first. */
  readonly after: number;
  /** Calls that fail; null for every one until `disarm`. */
  readonly times: number | null;
}

export const COUNT_ONLY: CallFault = { calls: [], error: 'EIO', after: 0, times: 0 };

/** What happened to the calls on the data directory while the fault was armed. */
export interface CallReport {
  /** The number of calls by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** Names and files of the first hundred that failed. */
  readonly failed: readonly (readonly [call: string, file: string])[];
  readonly failures: number;
}

export interface Supervised extends LaunchedProcess {
  arm(): void;
  disarm(): void;
  /** Once it has ended. */
  report(): CallReport;
}

interface SupervisedOptions {
  /** Whether the fault is armed from the first call on. */
  readonly isArmed?: boolean;
  /** The file for all changes of the directory, instead of a fault. */
  readonly record?: string;
  readonly nodeFlags?: readonly string[];
  readonly environment?: Record<string, string>;
}

export type Way = 'kernel' | 'preloaded';

let way: Way | null = null;

/** How faults are injected on this machine. `LEASEHOLD_TEST_FAULTS=preloaded` selects the second way. */
export function wayOfFaults(): Way {
  way ??= process.env['LEASEHOLD_TEST_FAULTS'] === 'preloaded' || !canSupervise() ? 'preloaded' : 'kernel';
  return way;
}

function canSupervise(): boolean {
  const spec = { ...COUNT_ONLY, under: '/', report: '/dev/null', armed: false, record: null };
  const words = [SUPERVISOR, JSON.stringify(spec), '/bin/sh', '-c', 'exit 7'];
  return spawnSync('python3', words, { timeout: 60_000 }).status === 7;
}

/** Starts the service; resolves before it is ready. */
export async function launchSupervised(
  scope: Scope,
  dataDir: string,
  fault: CallFault,
  { isArmed = false, record, nodeFlags = [], environment = {} }: SupervisedOptions = {},
): Promise<Supervised> {
  const report = `${dataDir}.calls`;
  const spec = JSON.stringify({ ...fault, under: dataDir, report, armed: isArmed, record: record ?? null });
  const launched = await launchProcess(scope, dataDir, ['--log-level', 'error'], {
    ...(wayOfFaults() === 'kernel'
      ? { under: [pathOf('python3'), SUPERVISOR, spec], nodeFlags, environment }
      : { nodeFlags: ['--import', PRELOADED, ...nodeFlags], environment: { ...environment, FAULT_SPEC: spec } }),
  });
  return {
    ...launched,
    arm: () => void launched.child.kill('SIGUSR1'),
    disarm: () => void launched.child.kill('SIGUSR2'),
    report: () =>
      existsSync(report) ? JSON.parse(readFileSync(report, 'utf8')) : { counts: {}, failed: [], failures: 0 },
  };
}

/** The absolute path of the program. */
function pathOf(program: string): string {
  const found = (process.env['PATH'] ?? '').split(':').find((directory) => existsSync(join(directory, program)));
  if (found === undefined) throw new Error(`the tests need ${program}`);
  return join(found, program);
}
