/**
 * Which tests run on which store. Everything runs on SQLite; all of it runs on PostgreSQL too, but what stands in the folders that
 * are named here, each with its reason. `test/conventions/passes.test.ts` holds that none of those opens a vault unseen.
 */
import { existsSync } from 'node:fs';
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

export type StoreName = 'sqlite' | 'postgres';

export interface Pass {
  readonly store: StoreName;
  readonly files: readonly string[];
}

function folderOf(file: string): string | undefined {
  const [top, folder] = path.relative(ROOT, file).split(path.sep);
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

/** What runs, one pass after the other; `only` is the store that was asked for, if one was. @throws Error for one that there is not */
export function passesFor(files: readonly string[], only: string | undefined): Pass[] {
  const passes: Pass[] = [
    { store: 'sqlite', files },
    { store: 'postgres', files: files.filter(runsOnBoth) },
  ];
  if (only !== undefined && !passes.some(({ store }) => store === only))
    throw new Error('LEASEHOLD_TEST_STORE must be sqlite or postgres');
  return passes.filter(({ store, files: own }) =>
    only === undefined ? store === 'sqlite' || own.length > 0 : store === only,
  );
}

/** Folders that are named above and are not there any more. */
export function missingFolders(): string[] {
  return Object.keys(ONCE).filter((folder) => !existsSync(path.join(ROOT, 'test', folder)));
}
