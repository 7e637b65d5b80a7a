/**
 * Which tests run in which command and on which store. Everything runs on SQLite. What reaches SQL runs on PostgreSQL too; of the
 * rest, what opens a vault does so in `npm run test:all`. `test/conventions/test-matrix.test.ts` checks that no test is left out of both.
 */
import { existsSync, globSync, statSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');

/** Folders of `test` whose files run once, and why. */
export const ONCE: Readonly<Record<string, string>> = {
  bench: 'no store',
  cli: 'a caller of the interface, which test/spec holds to be the same on both',
  client: 'the library, which is the same whatever the service keeps its vault in',
  cluster: 'nodes that share a PostgreSQL',
  contract: 'every store by itself, in one run',
  core: 'no store',
  crypto: 'no store',
  conventions: 'no store',
  kit: 'no store but PostgreSQL itself',
  masking: 'no store',
  mcp: 'a caller of the interface, as cli',
  migrate: 'from one store to the other',
  package: 'no store',
  run: 'no store',
  postgres: 'what is PostgreSQL’s alone',
  sqlite: 'what is SQLite’s alone',
};

/** Folders and files that run on PostgreSQL in `npm run test:all` alone, and why. */
export const LATER_ON_POSTGRES: Readonly<Record<string, string>> = {
  'test/e2e': 'programs and pages; test/cluster kills nodes on PostgreSQL',
  'test/server': 'starting and stopping, before and after the store is used',
  'test/hostile': 'requests that are rejected before the store is asked',
  'test/spec/configuration.test.ts': 'flags and addresses',
  'test/spec/connections.test.ts': 'sockets',
  'test/spec/conventions.test.ts': 'headers and errors of the HTTP layer',
  'test/spec/docs.test.ts': 'pages',
  'test/spec/guessing.test.ts': 'counted in memory',
  'test/spec/names.test.ts': 'the grammar of names, rejected before the store is asked',
  'test/spec/openapi.test.ts': 'a document of the HTTP layer',
  'test/spec/strictness.test.ts': 'bodies and queries that are rejected before the store is asked',
  'test/spec/verification.test.ts':
    'test/vault/verification-gap.test.ts and verification-inline.test.ts verify logs there',
  'test/vault/login-throttle.test.ts': 'no store',
  'test/vault/long-lists.test.ts': 'test/contract reads lists by pages there',
  'test/vault/long-log.test.ts': 'test/contract reads the log by pages there',
  'test/ledger/fair-queue.test.ts': 'no store',
  'test/vault/verification.test.ts':
    'test/vault/verification-gap.test.ts and verification-inline.test.ts verify logs there',
  'test/vault/verification-borders.test.ts': 'the same',
  'test/vault/verification-single-flight.test.ts': 'no store',
};

/** Takes long by nature: packaging, tours in every shell, floods. Runs in `npm run test:all` alone, unless it is named. */
const LONG = '.long.test.ts';
/** Runs in `npm test` with a few rounds, and in `npm run test:all` with all of them: see test/kit/scale.ts. */
const SCALED = [
  'test/client/endless-responses.test.ts',
  'test/cluster/revocation.test.ts',
  'test/e2e/crash.test.ts',
  'test/migrate/interrupted.test.ts',
];
/** Folders that need no service and no process. */
const UNIT = ['core', 'crypto'];

export type Kind = 'usual' | 'unit' | 'long';

const nameOf = (file: string): string => path.relative(ROOT, file).split(path.sep).join('/');

/** Relative names are meant from where npm was called, else from the top of the project. @throws Error for a name that does not exist */
export function findTests(names: readonly string[], kind: Kind): string[] {
  if (names.length === 0) {
    const all = globSync('test/**/*.test.ts', { cwd: ROOT }).map((name) => path.join(ROOT, name));
    return kind === 'unit' ? all.filter((file) => UNIT.includes(folderOf(file) ?? '')) : all;
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

function folderOf(file: string): string | undefined {
  const [top, folder] = nameOf(file).split('/');
  return top === 'test' ? folder : undefined;
}

/** Whether the file runs on both stores. What lies outside of `test`, such as a sample of a test of the runner, runs once. */
export function runsOnBoth(file: string): boolean {
  const folder = folderOf(file);
  return folder !== undefined && !Object.hasOwn(ONCE, folder);
}

/** Whether any of them asks for a database, whatever store it was told to run on. */
export function needsServer(passes: readonly Pass[]): boolean {
  const folders = ['cluster', 'contract', 'kit', 'migrate', 'postgres'];
  return passes.some(
    ({ store, files }) => store === 'postgres' || files.some((file) => folders.includes(folderOf(file) ?? '')),
  );
}

const isLater = (file: string): boolean =>
  Object.keys(LATER_ON_POSTGRES).some((name) => nameOf(file) === name || nameOf(file).startsWith(`${name}/`));

/**
 * What runs. A file that was named runs whatever its name says. `only` is the store that was asked for, if one was: then everything
 * that can runs on it. @throws Error for a store that does not exist
 */
export function passesFor(
  files: readonly string[],
  only: string | undefined,
  kind: Kind = 'usual',
  areNamed = false,
): Pass[] {
  const isLong = (file: string): boolean => file.endsWith(LONG);
  const onBoth = files.filter(runsOnBoth);
  const kept: Record<StoreName, readonly string[]> =
    kind === 'long'
      ? {
          sqlite: files.filter((file) => isLong(file) || SCALED.includes(nameOf(file))),
          postgres: onBoth.filter((file) => isLong(file) || isLater(file)),
        }
      : {
          sqlite: files.filter((file) => areNamed || !isLong(file)),
          postgres: onBoth.filter((file) => areNamed || only !== undefined || !(isLong(file) || isLater(file))),
        };
  const passes: Pass[] = [
    { store: 'sqlite', files: kept.sqlite },
    { store: 'postgres', files: kept.postgres },
  ];
  if (only !== undefined && !passes.some(({ store }) => store === only))
    throw new Error('LEASEHOLD_TEST_STORE must be sqlite or postgres');
  return passes.filter(({ store, files: own }) =>
    only === undefined ? store === 'sqlite' || own.length > 0 : store === only,
  );
}

/** Folders and files that are named above and do not exist. */
export function missingNames(): string[] {
  const names = [...Object.keys(ONCE).map((folder) => `test/${folder}`), ...Object.keys(LATER_ON_POSTGRES), ...SCALED];
  return names.filter((name) => !existsSync(path.join(ROOT, name)));
}
