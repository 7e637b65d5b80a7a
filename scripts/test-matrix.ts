/**
 * Defines which tests run in which command and on which store. All run on SQLite. Tests that reach SQL also run on
 * PostgreSQL; the other tests that open a vault do so in `npm run test:all`. `test/conventions/test-matrix.test.ts`
 * checks that no test is left out.
 */
import { existsSync, globSync, statSync } from 'node:fs';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '..');

/** The directories and files of `test` that run once, with the reasons. */
export const ONCE: Readonly<Record<string, string>> = {
  backup: 'from each store to each store',
  bench: 'no store',
  broker: 'no store',
  cli: 'uses the interface, which test/spec tests on both stores',
  client: 'uses the interface, as cli does',
  cluster: 'nodes that share a PostgreSQL',
  console: 'uses the interface, as cli does',
  contract: 'tests every store in one run',
  core: 'no store',
  crypto: 'no store',
  faults: 'files of SQLite and of the data directory; test/cluster has the faults of PostgreSQL',
  conventions: 'no store',
  'hostile/fuzz-client.long.test.ts': 'requests that are rejected before the store is read',
  'hostile/fuzz-receivers.long.test.ts': 'clients of other services, without a vault',
  'hostile/fuzz-upstream.long.test.ts': 'responses that do not reach the store',
  kit: 'no store except PostgreSQL itself',
  masking: 'no store',
  mcp: 'uses the interface, as cli does',
  migrate: 'from one store to the other',
  package: 'no store',
  run: 'no store',
  postgres: 'properties of PostgreSQL',
  sqlite: 'properties of SQLite',
};

/** The directories and files that run on PostgreSQL only in `npm run test:all`, with the reasons. */
export const LATER_ON_POSTGRES: Readonly<Record<string, string>> = {
  'test/e2e': 'programs and pages; test/cluster kills nodes on PostgreSQL',
  'test/server': 'start and stop, before and after the store is used',
  'test/hostile': 'requests that are rejected before the store is read',
  'test/spec/configuration.test.ts': 'flags and addresses',
  'test/spec/connections.test.ts': 'sockets',
  'test/spec/conventions.test.ts': 'headers and errors of the HTTP layer',
  'test/spec/docs.test.ts': 'pages',
  'test/spec/grammars.test.ts': 'the grammar of fields, rejected before the store is read',
  'test/spec/guessing.test.ts': 'counted in memory',
  'test/spec/matrix.test.ts': 'who may call what, which core decides',
  'test/spec/names.test.ts': 'the grammar of names, rejected before the store is read',
  'test/spec/openapi.test.ts': 'a document of the HTTP layer',
  'test/spec/restored-rows.test.ts': 'MACs of rows; test/spec/random-tampering.test.ts alters rows there',
  'test/spec/product.test.ts': 'starting, stopping and the files of the data directory, as test/server',
  'test/spec/strictness.test.ts': 'bodies and queries that are rejected before the store is read',
  'test/spec/verification.test.ts':
    'test/vault/verification-gap.test.ts and verification-inline.test.ts verify logs there',
  'test/vault/log-columns.test.ts': 'no store',
  'test/vault/log-texts.test.ts': 'no store',
  'test/vault/login-throttle.test.ts': 'no store',
  'test/vault/long-log.test.ts': 'test/contract reads the log by pages there',
  'test/ledger/fair-queue.test.ts': 'no store',
  'test/vault/verification.test.ts':
    'test/vault/verification-gap.test.ts and verification-inline.test.ts verify logs there',
  'test/vault/verification-single-flight.test.ts': 'no store',
};

/**
 * Tests that take long: packaging, tours in every shell, overload. They run only in `npm run test:all`, or if they are
 * named.
 */
const LONG = '.long.test.ts';
/**
 * Tests that run a few rounds in `npm test`, and all rounds in `npm run test:all`, on each of their stores: see
 * test/kit/scale.ts.
 */
const SCALED = [
  'test/backup/fuzzed.test.ts',
  'test/backup/refused.test.ts',
  'test/broker/guessing.test.ts',
  'test/broker/redaction-splits.test.ts',
  'test/broker/redaction.test.ts',
  'test/broker/streaming.test.ts',
  'test/cli/run-ignored-signals.test.ts',
  'test/client/endless-responses.test.ts',
  'test/cluster/approvals.test.ts',
  'test/cluster/checkpoint-races.test.ts',
  'test/cluster/review-regressions.test.ts',
  'test/cluster/revocation.test.ts',
  'test/cluster/split-brain.test.ts',
  'test/e2e/crash.test.ts',
  'test/e2e/streams-crash.test.ts',
  'test/e2e/use-crash.test.ts',
  'test/faults/call-faults.test.ts',
  'test/faults/damage.test.ts',
  'test/faults/power-cuts.test.ts',
  'test/faults/tampering.test.ts',
  'test/hostile/fuzz.test.ts',
  'test/hostile/use-ssrf.test.ts',
  'test/masking/matcher.test.ts',
  'test/mcp/messages.test.ts',
  'test/vault/key-rotation.test.ts',
  'test/spec/grammars.test.ts',
  'test/spec/random-tampering.test.ts',
  'test/spec/unaltered-state.test.ts',
  'test/sqlite/power-cut.test.ts',
  'test/vault/audit-counts.test.ts',
  'test/vault/counts.test.ts',
  'test/vault/exposure-model.test.ts',
  'test/vault/long-log.test.ts',
  'test/vault/verification.test.ts',
];
/** Directories that need no service and no process. */
const UNIT = ['core', 'crypto'];

export type Kind = 'usual' | 'unit' | 'long';

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
  const directory = directoryOf(file);
  if (directory === undefined) return false;
  return [directory, nameOf(file).slice('test/'.length)].every((name) => !Object.hasOwn(ONCE, name));
}

/** Whether any of the tests needs a PostgreSQL server, also if it runs on SQLite. */
export function needsServer(passes: readonly Pass[]): boolean {
  const directories = ['backup', 'cluster', 'contract', 'kit', 'migrate', 'postgres'];
  return passes.some(
    ({ store, files }) => store === 'postgres' || files.some((file) => directories.includes(directoryOf(file) ?? '')),
  );
}

const isLater = (file: string): boolean =>
  Object.keys(LATER_ON_POSTGRES).some((name) => nameOf(file) === name || nameOf(file).startsWith(`${name}/`));

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
  const isLong = (file: string): boolean => file.endsWith(LONG);
  const isScaled = (file: string): boolean => SCALED.includes(nameOf(file));
  const onBoth = files.filter(runsOnBoth);
  const kept: Record<StoreName, readonly string[]> =
    kind === 'long'
      ? {
          sqlite: files.filter((file) => isLong(file) || isScaled(file)),
          postgres: onBoth.filter((file) => isLong(file) || isLater(file) || isScaled(file)),
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

/** The directories and files named above that do not exist. */
export function missingNames(): string[] {
  const names = [...Object.keys(ONCE).map((name) => `test/${name}`), ...Object.keys(LATER_ON_POSTGRES), ...SCALED];
  return names.filter((name) => !existsSync(path.join(ROOT, name)));
}
