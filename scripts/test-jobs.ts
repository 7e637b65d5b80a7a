/**
 * Groups test files into processes. Files of one directory share a process, a few at a time, because starting a process
 * takes longer than running most files. A file that changes or measures process-wide state gets a separate process.
 */
import path from 'node:path';
import type { Pass, StoreName } from './test-matrix.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** Limits the duration of one process, so that the last one does not run alone for long. */
const MAX_FILES = 10;

/** Test files with a separate process, each with the reason. `test/conventions/jobs.test.ts` checks that they exist. */
export const ALONE: Readonly<Record<string, string>> = {};

/** The directories whose jobs take longest. They start first. */
const STARTED_FIRST = ['e2e', 'cluster', 'conventions', 'migrate', 'mcp', 'cli'];

export interface Job {
  readonly store: StoreName;
  /** Files of one directory. */
  readonly files: readonly string[];
}

const nameOf = (file: string): string => path.relative(ROOT, file).split(path.sep).join('/');

function rankOf(file: string): number {
  const rank = STARTED_FIRST.indexOf(path.basename(path.dirname(file)));
  return rank === -1 ? STARTED_FIRST.length : rank;
}

/** Returns the jobs in the order in which they start. */
export function jobsFor(passes: readonly Pass[]): Job[] {
  const jobs = passes.flatMap(({ store, files }) => {
    const [alone = [], shared = []] = [true, false].map((isAlone) =>
      files.filter((file) => Object.hasOwn(ALONE, nameOf(file)) === isAlone),
    );
    const directories = Map.groupBy(shared.toSorted(), path.dirname).values();
    const groups = [...directories.flatMap(split), ...alone.map((file) => [file])];
    return groups.map((group): Job => ({ store, files: group }));
  });
  return jobs.toSorted((a, b) => rankOf(a.files[0] ?? '') - rankOf(b.files[0] ?? ''));
}

/** Splits files into groups of about the same size. */
function split(files: readonly string[]): string[][] {
  const count = Math.ceil(files.length / MAX_FILES);
  return Array.from({ length: count }, (_, group) => files.filter((_, index) => index % count === group));
}
