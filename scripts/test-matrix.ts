/**
 * Defines which tests run in which command and on which store. `npm test` runs all but the long ones on SQLite, and a
 * few on PostgreSQL. `npm run test:all` runs the others of both kinds. `npm run test:weekly` repeats the tests that
 * have rounds, with all of them, and runs the largest loads. `test/conventions/test-matrix.test.ts` checks that no test
 * is left out.
 */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');

/** The directories and files of `test` that run once, with the reasons. */
export const ONCE: Readonly<Record<string, string>> = {
  backup: 'from each store to each store',
  bench: 'no store',
  broker: 'no store',
  cli: 'uses the HTTP API, which test/spec tests on both stores',
  client: 'uses the HTTP API, as cli does',
  cluster: 'nodes that share a PostgreSQL',
  console: 'uses the HTTP API, as cli does',
  contract: 'tests every store in one run',
  core: 'no store',
  crypto: 'no store',
  faults: 'files of SQLite and of the data directory; test/cluster has the faults of PostgreSQL',
  conventions: 'no store',
  e2e: 'programs and pages; test/cluster kills nodes on PostgreSQL',
  hostile: 'requests that are rejected before the store is read, and other services',
  masking: 'no store',
  mcp: 'uses the HTTP API, as cli does',
  package: 'no store',
  run: 'no store',
  server: 'starting and stopping; test/postgres and test/cluster do so with a database',
  postgres: 'properties of PostgreSQL',
  spec: 'decides alike on each store, except for the files below',
  sqlite: 'properties of SQLite',
  vault: 'decides alike on each store, except for the files below',
};

/**
 * The tests for which `npm test` starts PostgreSQL too. `test/contract`, `test/cluster` and `test/postgres` use it
 * themselves.
 */
export const EARLY_ON_POSTGRES: readonly string[] = ['test/spec/lists.test.ts'];

/**
 * The tests that `npm run test:all` runs on PostgreSQL although their directory runs once: they filter, count or page
 * in SQL, edit rows, or have several nodes there.
 */
const LATER_IN_SPEC = [
  'altered-log-and-rows',
  'audit',
  'credentials',
  'entity-tags',
  'exposure',
  'idempotency',
  'leases',
  'matrix',
  'operator-time',
  'overview',
  'recorded-states',
  'restored-rows',
  'unrecorded',
  'verification',
];
const LATER_IN_VAULT = [
  'checkpoints',
  'counts',
  'exposure-model',
  'foreign-entries.long',
  'idempotency',
  'integrity',
  'key-rotation',
  'overview',
  'panic',
  'sessions',
  'verification-ranges.long',
];
const LATER_ON_POSTGRES: readonly string[] = [
  ...LATER_IN_SPEC.map((name) => `test/spec/${name}.test.ts`),
  ...LATER_IN_VAULT.map((name) => `test/vault/${name}.test.ts`),
];

/** Tests that take long, such as packaging and pages. Only `npm run test:all` runs them. */
const LONG = '.long.test.ts';
/** Loads and sweeps that take minutes. Only `npm run test:weekly` runs them. */
const WEEKLY = '.weekly.test.ts';

/** Directories that need no server and no process. */
const UNIT = ['core', 'crypto'];

export type Kind = 'usual' | 'unit' | 'long' | 'weekly';

const nameOf = (file: string): string => path.relative(ROOT, file).split(path.sep).join('/');

/**
 * Resolves relative names from the caller's directory or the top of the project.
 * @throws Error for a name that does not exist
 */
export function findTests(names: readonly string[], kind: Kind): string[] {
  if (names.length === 0) {
    const all = globSync('test/**/*.test.ts', { cwd: ROOT }).map((name) => path.join(ROOT, name));
    return kind === 'unit' ? all.filter((file) => UNIT.includes(directoryOf(file) ?? '')) : all;
  }
  return names.flatMap((name) => {
    const file = [process.env['INIT_CWD'] ?? '.', ROOT].map((from) => path.resolve(from, name)).find(existsSync);
    if (file === undefined) throw new Error(`no such test: ${name}`);
    if (!statSync(file).isDirectory()) return [file];
    return globSync('**/*.test.ts', { cwd: file }).map((found) => path.join(file, found));
  });
}

export type StoreName = 'sqlite' | 'postgres';

export interface Pass {
  readonly store: StoreName;
  readonly files: readonly string[];
}

function directoryOf(file: string): string | undefined {
  const [top, directory] = nameOf(file).split('/');
  return top === 'test' ? directory : undefined;
}

/**
 * Whether the file runs on both stores. A file outside of `test`, such as a sample of the runner's tests, runs once.
 */
export function runsOnBoth(file: string): boolean {
  if (isEarly(file) || LATER_ON_POSTGRES.includes(nameOf(file))) return true;
  const directory = directoryOf(file);
  if (directory === undefined) return false;
  return [directory, nameOf(file).slice('test/'.length)].every((name) => !Object.hasOwn(ONCE, name));
}

/** Whether the file opens its vaults on the selected store, though it runs once. */
const opensSelected = (file: string): boolean => ['spec', 'vault'].includes(directoryOf(file) ?? '');

/** Whether any of the tests needs a PostgreSQL server, even if its store is SQLite. */
export function needsServer(passes: readonly Pass[]): boolean {
  const directories = ['backup', 'cluster', 'contract', 'postgres'];
  return passes.some(
    ({ store, files }) => store === 'postgres' || files.some((file) => directories.includes(directoryOf(file) ?? '')),
  );
}

const isEarly = (file: string): boolean => EARLY_ON_POSTGRES.includes(nameOf(file));
const isLong = (file: string): boolean => file.endsWith(LONG);
const isWeekly = (file: string): boolean => file.endsWith(WEEKLY);
/** Whether the file takes a number of rounds from test/kit/scale.ts or test/kit/property.ts. */
const hasRounds = (file: string): boolean => /\bscaled\(|\bruns\([\d_]+, [\d_]+\)/.test(readFileSync(file, 'utf8'));

/**
 * The passes of a run. A file that the user named always runs. `only` is the requested store: then every test that can
 * runs on it.
 * @throws Error for an unknown store
 */
export function passesFor(
  files: readonly string[],
  only: string | undefined,
  kind: Kind = 'usual',
  areNamed = false,
): Pass[] {
  const onBoth = files.filter((file) => runsOnBoth(file) || (areNamed && only !== undefined && opensSelected(file)));
  const passes: Pass[] = [
    { store: 'sqlite', files: files.filter((file) => areNamed || belongsTo(kind, file)) },
    {
      store: 'postgres',
      files: onBoth.filter(
        (file) => areNamed || (only === undefined ? laterOnPostgres(kind, file) : belongsTo(kind, file)),
      ),
    },
  ];
  if (only !== undefined && !passes.some(({ store }) => store === only))
    throw new Error('LEASEHOLD_TEST_STORE must be sqlite or postgres');
  return passes.filter(({ store, files: own }) =>
    only === undefined ? store === 'sqlite' || own.length > 0 : store === only,
  );
}

function belongsTo(kind: Kind, file: string): boolean {
  if (kind === 'weekly') return isWeekly(file) || hasRounds(file);
  return !isWeekly(file) && isLong(file) === (kind === 'long');
}

function laterOnPostgres(kind: Kind, file: string): boolean {
  if (kind === 'weekly') return belongsTo(kind, file);
  return !isWeekly(file) && isEarly(file) === (kind !== 'long');
}

/** The directories and files named above that do not exist. */
export function missingNames(): string[] {
  const names = [...Object.keys(ONCE).map((name) => `test/${name}`), ...EARLY_ON_POSTGRES, ...LATER_ON_POSTGRES];
  return names.filter((name) => !existsSync(path.join(ROOT, name)));
}
