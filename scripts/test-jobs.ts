/**
 * Groups test files into processes. Files of one directory share a process, a few at a time, because starting a process
 * takes longer than running most files. A file that takes all processors runs when nothing else does, after the others.
 */
import path from 'node:path';
import type { Pass, StoreName } from './test-matrix.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** Bounds how long one process runs, so that the last one does not run alone for long. */
const MAX_FILES = 32;

/** Test files that run while no other does, each with the reason. */
export const ALONE: Readonly<Record<string, string>> = {
  'test/e2e/overload.weekly.test.ts': 'takes all processors',
};

/**
 * The directories whose jobs wait or compute longest. They start first, so that none runs alone at the end. The tests
 * of `run` compute little: they wait for the ends of leases.
 */
const STARTED_FIRST = [
  'run',
  'contract',
  'cli',
  'cluster',
  'spec',
  'vault',
  'postgres',
  'sqlite',
  'server',
  'client',
  'mcp',
  'hostile',
];

export interface Job {
  readonly store: StoreName;
  /** Files of one directory. */
  readonly files: readonly string[];
  readonly isAlone: boolean;
}

const nameOf = (file: string): string => path.relative(ROOT, file).split(path.sep).join('/');

function rankOf(file: string): number {
  const rank = STARTED_FIRST.indexOf(path.basename(path.dirname(file)));
  return rank === -1 ? STARTED_FIRST.length : rank;
}

/** Returns the jobs in the order in which they start, those that run alone last. */
export function jobsFor(passes: readonly Pass[]): Job[] {
  const jobs = passes.flatMap(({ store, files }) => {
    const [alone = [], shared = []] = [true, false].map((isAlone) =>
      files.filter((file) => Object.hasOwn(ALONE, nameOf(file)) === isAlone),
    );
    const directories = Map.groupBy(shared.toSorted(), path.dirname).values();
    return [
      ...directories.flatMap(split).map((group): Job => ({ store, files: group, isAlone: false })),
      ...alone.map((file): Job => ({ store, files: [file], isAlone: true })),
    ];
  });
  return jobs.toSorted(
    (a, b) => Number(a.isAlone) - Number(b.isAlone) || rankOf(a.files[0] ?? '') - rankOf(b.files[0] ?? ''),
  );
}

/** Splits files into groups of about the same size. */
function split(files: readonly string[]): string[][] {
  const count = Math.ceil(files.length / MAX_FILES);
  return Array.from({ length: count }, (_, group) => files.filter((_, index) => index % count === group));
}
