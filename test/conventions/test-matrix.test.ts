// The tests that run on both stores: all except those in the list of scripts/test-matrix.ts. None of the exceptions
// opens a vault unnoticed.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ALONE, jobsFor } from '../../scripts/test-jobs.ts';
import { missingNames, ONCE, passesFor, runsOnBoth } from '../../scripts/test-matrix.ts';
import { importsOf, ROOT, readSources, resolveImport, type Source, toSource } from './source.ts';

const tests = readSources(['test'], ['.ts']);
const directoryOf = (name: string): string => name.split('/')[1] ?? '';

/** Functions that open a vault on the selected store. */
const OPENERS = ['test/kit/service.ts', 'test/kit/process.ts', 'test/kit/stores.ts', 'test/vault/fixture.ts'];

/** The files that the file is made of, itself included. */
function partsOf(name: string, sources: readonly Source[]): Set<string> {
  const parts = new Set<string>();
  const add = (part: string): void => {
    const source = sources.find((other) => other.name === part);
    if (source === undefined || parts.has(part)) return;
    parts.add(part);
    for (const { specifier } of importsOf(source)) {
      if (specifier?.startsWith('.')) add(resolveImport(source, specifier));
    }
  };
  add(name);
  return parts;
}

/** Files of tests, of directories that run once because they need no store, that open a vault all the same. */
function openersAmong(sources: readonly Source[]): string[] {
  const storeless = Object.keys(ONCE).filter((directory) => ONCE[directory] === 'no store');
  return sources
    .filter(({ name }) => storeless.includes(directoryOf(name)) && name.endsWith('.test.ts'))
    .filter(({ name }) => !partsOf(name, sources).isDisjointFrom(new Set(OPENERS)))
    .map(({ name }) => name);
}

test('tests that run once because they need no store open no vault, directly or through imports', () => {
  assert.deepEqual(openersAmong(tests), []);
  const hidden = [
    toSource('test/core/a.test.ts', `import { scene } from './scene.ts';`),
    toSource('test/core/scene.ts', `import { openVault } from '../vault/fixture.ts';`),
    toSource('test/vault/fixture.ts', ''),
  ];
  assert.deepEqual(openersAmong(hidden), ['test/core/a.test.ts']);
});

test('tests that run on both stores name neither: otherwise the same test would run twice', () => {
  const byName = /^node:sqlite$|\/store\/(?:sqlite|postgres)\/store\.ts$/;
  const asks = (source: Source) => importsOf(source).some(({ specifier }) => byName.test(specifier ?? ''));
  const both = tests.filter(({ name }) => name.endsWith('.test.ts') && runsOnBoth(path.join(ROOT, name)));
  assert.deepEqual(
    both.filter(asks).map(({ name }) => name),
    [],
  );
  assert.equal(asks(toSource('test/spec/a.test.ts', `import { DatabaseSync } from 'node:sqlite';`)), true);
});

const files = globSync('test/**/*.test.ts', { cwd: ROOT }).map((name) => path.join(ROOT, name));
const named = (names: readonly string[]): string[] => names.map((name) => path.join(ROOT, name));
const ofStore = (passes: ReturnType<typeof passesFor>, store: string): readonly string[] =>
  passes.find((run) => run.store === store)?.files ?? [];

test('npm test and npm run test:all together omit no file on either store, and repeat none', () => {
  const [usual, long] = [passesFor(files, undefined), passesFor(files, undefined, 'long')];
  const all = files.filter((file) => !file.endsWith('.weekly.test.ts'));
  const sqlite = [...ofStore(usual, 'sqlite'), ...ofStore(long, 'sqlite')];
  assert.deepEqual(sqlite.toSorted(), all.toSorted());
  const postgres = [...ofStore(usual, 'postgres'), ...ofStore(long, 'postgres')];
  assert.deepEqual(postgres.toSorted(), all.filter(runsOnBoth).toSorted());
  assert.deepEqual(missingNames(), []);
});

test('npm run test:weekly runs the largest loads, and the tests that have a number of rounds', () => {
  const weekly = ofStore(passesFor(files, undefined, 'weekly'), 'sqlite').map((file) => path.relative(ROOT, file));
  assert.ok(weekly.includes('test/e2e/crash.test.ts') && weekly.includes('test/e2e/overload.weekly.test.ts'));
  assert.ok(!weekly.includes('test/core/errors.test.ts'));
});

test('a new directory runs on SQLite in npm test, and on PostgreSQL in npm run test:all', () => {
  const added = named(['test/brand_new/a.test.ts']);
  assert.deepEqual(passesFor(added, undefined), [{ store: 'sqlite', files: added }]);
  assert.deepEqual(passesFor(added, undefined, 'long'), [
    { store: 'sqlite', files: [] },
    { store: 'postgres', files: added },
  ]);
});

test('a named file runs on both stores, however long it takes', () => {
  const long = named(['test/vault/verification-ranges.long.test.ts', 'test/spec/leases.test.ts']);
  assert.deepEqual(
    passesFor(long, undefined, 'usual', true).map((run) => run.files),
    [long, long],
  );
});

test('a selected store is the only one, and one that does not exist is rejected', () => {
  const two = named(['test/spec/leases.test.ts', 'test/core/path.test.ts']);
  assert.deepEqual(passesFor(two, 'sqlite'), [{ store: 'sqlite', files: two }]);
  assert.deepEqual(passesFor(two, 'postgres'), [{ store: 'postgres', files: two.slice(0, 1) }]);
  assert.throws(() => passesFor(two, 'oracle'), /must be sqlite or postgres/);
});

test('each file of a pass runs in one process with files of its directory, or last and alone if it is named', () => {
  for (const kind of ['usual', 'long', 'weekly'] as const) {
    const passes = passesFor(files, undefined, kind);
    const jobs = jobsFor(passes);
    for (const { store, files: own } of passes) {
      const run = jobs.filter((job) => job.store === store).flatMap((job) => job.files);
      assert.deepEqual(run.toSorted(), own.toSorted());
    }
    for (const job of jobs) assert.equal(new Set(job.files.map(path.dirname)).size, 1);
    const firstAlone = jobs.findIndex(({ isAlone }) => isAlone);
    const last = firstAlone === -1 ? [] : jobs.slice(firstAlone);
    assert.ok(last.every(({ isAlone, files: own }) => isAlone && own.length === 1));
    const alone = files.filter((file) => Object.hasOwn(ALONE, path.relative(ROOT, file)));
    assert.equal(alone.length, Object.keys(ALONE).length, 'each name exists');
    const expected = passes.flatMap(({ files: own }) => own.filter((file) => alone.includes(file)));
    assert.deepEqual(last.flatMap((job) => job.files).toSorted(), expected.toSorted());
  }
});
