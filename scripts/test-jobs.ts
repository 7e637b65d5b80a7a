/**
 * Which test files share a process. Files of one folder do, a few at a time: a process costs more to start and to load than most
 * files take to run. A file that changes what the whole process shares, or measures it, has a process to itself.
 */
import path from 'node:path';
import type { Pass, StoreName } from './test-matrix.ts';

const ROOT = path.resolve(import.meta.dirname, '..');
/** Bounds how long one process runs, so that the last one does not run alone for long. */
const MAX_FILES = 16;

/** Test files that have a process to themselves, each with the reason. `test/conventions/jobs.test.ts` checks that they exist. */
export const ALONE: Readonly<Record<string, string>> = {};

/** The directories whose jobs take longest, the longest first. They start first, so that none runs alone at the end. */
const STARTED_FIRST = [
  'cli',
  'cluster',
  'spec',
  'vault',
  'postgres',
  'sqlite',
  'migrate',
  'server',
  'client',
  'mcp',
  'hostile',
];

export interface Job {
  readonly store: StoreName;
  /** All of one folder. */
  readonly files: readonly string[];
}

const nameOf = (file: string): string => path.relative(ROOT, file).split(path.sep).join('/');

function rankOf(file: string): number {
  const rank = STARTED_FIRST.indexOf(path.basename(path.dirname(file)));
  return rank === -1 ? STARTED_FIRST.length : rank;
}

/** Those that start first come first. */
export function jobsFor(passes: readonly Pass[]): Job[] {
  const jobs = passes.flatMap(({ store, files }) => {
    const [alone = [], shared = []] = [true, false].map((isAlone) =>
      files.filter((file) => Object.hasOwn(ALONE, nameOf(file)) === isAlone),
    );
    const folders = Map.groupBy(shared.toSorted(), path.dirname).values();
    const groups = [...folders.flatMap(split), ...alone.map((file) => [file])];
    return groups.map((group): Job => ({ store, files: group }));
  });
  return jobs.toSorted((a, b) => rankOf(a.files[0] ?? '') - rankOf(b.files[0] ?? ''));
}

/** Into groups of about the same size. */
function split(files: readonly string[]): string[][] {
  const count = Math.ceil(files.length / MAX_FILES);
  return Array.from({ length: count }, (_, group) => files.filter((_, index) => index % count === group));
}
