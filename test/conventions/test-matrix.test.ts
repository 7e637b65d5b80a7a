// Which tests run on both stores: all but those of the folders that scripts/test-matrix.ts names, and none of these opens a vault unseen.

import assert from 'node:assert/strict';
import { globSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { missingFolders, ONCE, passesFor, runsOnBoth } from '../../scripts/test-matrix.ts';
import { importsOf, ROOT, readSources, resolveImport, type Source, toSource } from './source.ts';

const tests = readSources(['test'], ['.ts']);
const folderOf = (name: string): string => name.split('/')[1] ?? '';

/** What opens a vault on the store that was chosen. */
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

/** Files of tests, of folders that run once because they need no store, that open a vault all the same. */
function openersAmong(sources: readonly Source[]): string[] {
  const storeless = Object.keys(ONCE).filter((folder) => ONCE[folder] === 'no store');
  return sources
    .filter(({ name }) => storeless.includes(folderOf(name)) && name.endsWith('.test.ts'))
    .filter(({ name }) => !partsOf(name, sources).isDisjointFrom(new Set(OPENERS)))
    .map(({ name }) => name);
}

test('what runs once for want of a store opens no vault, by any way', () => {
  assert.deepEqual(openersAmong(tests), []);
  const hidden = [
    toSource('test/core/a.test.ts', `import { scene } from './scene.ts';`),
    toSource('test/core/scene.ts', `import { openVault } from '../vault/fixture.ts';`),
    toSource('test/vault/fixture.ts', ''),
  ];
  assert.deepEqual(openersAmong(hidden), ['test/core/a.test.ts']);
});

test('what runs on both stores asks for neither by name: else it would be the same test twice', () => {
  const byName = /^node:sqlite$|\/store\/(?:sqlite|postgres)\/store\.ts$/;
  const asks = (source: Source) => importsOf(source).some(({ specifier }) => byName.test(specifier ?? ''));
  const both = tests.filter(({ name }) => !Object.hasOwn(ONCE, folderOf(name)));
  assert.deepEqual(
    both.filter(asks).map(({ name }) => name),
    [],
  );
  assert.equal(asks(toSource('test/spec/a.test.ts', `import { DatabaseSync } from 'node:sqlite';`)), true);
});

test('every file of tests is in the first pass, and all but those of the folders in the second', () => {
  const files = globSync('test/**/*.test.ts', { cwd: ROOT }).map((name) => path.join(ROOT, name));
  const [sqlite, postgres, ...more] = passesFor(files, undefined);
  assert.deepEqual([sqlite?.store, sqlite?.files, postgres?.store, more], ['sqlite', files, 'postgres', []]);
  const folders = new Set(postgres?.files.map((file) => folderOf(path.relative(ROOT, file))));
  assert.deepEqual([...folders].sort(), ['e2e', 'hostile', 'ledger', 'server', 'spec', 'vault']);
  assert.deepEqual(missingFolders(), []);
  assert.equal(runsOnBoth(path.join(ROOT, 'test/brand_new/a.test.ts')), true, 'a new folder runs on both');
});

test('a store that is asked for is the only one, and one that there is not is refused', () => {
  const files = ['test/spec/leases.test.ts', 'test/core/path.test.ts'].map((name) => path.join(ROOT, name));
  assert.deepEqual(passesFor(files, 'sqlite'), [{ store: 'sqlite', files }]);
  assert.deepEqual(passesFor(files, 'postgres'), [{ store: 'postgres', files: files.slice(0, 1) }]);
  assert.throws(() => passesFor(files, 'oracle'), /must be sqlite or postgres/);
});
