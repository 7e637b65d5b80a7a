// The package is not published, and the registry's `leasehold` is another project: no text or program may request it.

import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT } from './source.ts';

const PAGES = ['*.md', 'docs/**/*.md', 'examples/*', 'deploy/**/*', 'src/**/*', 'scripts/*', '.ci/run', 'package.json'];
/** Separators of words in a shell, in prose, in JSON, YAML and TOML. */
const SEPARATORS = /["'`,;:[\]{}()\s]+|\bargs\b/g;
const RUNS = /\b(?:npx|pnpx|bunx|(?:npm|pnpm|yarn|bun) (?:exec|dlx|x)) ((?:-\S+ )*)leasehold(?:@\S+)?(?= |$)/g;
const INSTALLS = /\b(?:npm|pnpm|yarn|bun) (?:install|i|add) (?:-\S+ )*leasehold(?:@\S+)?(?= |$)/g;

/** Commands that would run or install the registry's package. */
function registryUses(text: string): string[] {
  const words = text.replaceAll(SEPARATORS, ' ').replaceAll(/ +/g, ' ');
  const runs = [...words.matchAll(RUNS)].filter(([, flags = '']) => !/(?:^| )--no(?:-install)? /.test(flags));
  return [...runs, ...words.matchAll(INSTALLS)].map(([found]) => found.trim());
}

test('no page, example or message runs or installs the registry’s package', () => {
  const names = PAGES.flatMap((pattern) => globSync(pattern, { cwd: ROOT, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  assert.ok(names.some((name) => name.endsWith('github-actions.yml')) && names.length > 100);
  const found = names.flatMap((name) =>
    registryUses(readFileSync(name, 'utf8')).map((use) => `${path.relative(ROOT, name)}: ${use}`),
  );
  assert.deepEqual(found, []);
});

test('a use of the registry is found, and a local one is not', () => {
  for (const text of [
    'npx leasehold --help',
    'npx -y leasehold@latest list',
    '`npm i leasehold`, then',
    'pnpm dlx leasehold',
    'run: npm install --global --omit=dev leasehold',
    'npm install leasehold@0.1.0',
    '"command": "npx",\n "args": ["leasehold", "mcp"]',
  ])
    assert.equal(registryUses(text).length, 1, text);
  for (const text of ['npx --no-install leasehold list', 'npm install ./leasehold-0.1.0.tgz'])
    assert.deepEqual(registryUses(text), []);
  assert.deepEqual(registryUses('npm exec --no -- leasehold'), []);
});

test('every packed file that a page names is the one that npm pack creates for this version', () => {
  const { name, version }: { name: string; version: string } = JSON.parse(
    readFileSync(path.join(ROOT, 'package.json'), 'utf8'),
  );
  const pages = globSync(['*.md', 'docs/**/*.md', 'examples/*'], { cwd: ROOT });
  const named = pages.flatMap(
    (page) => readFileSync(path.join(ROOT, page), 'utf8').match(/leasehold-[\w.]+\.tgz/g) ?? [],
  );
  assert.ok(named.length >= 4);
  assert.deepEqual([...new Set(named)], [`${name}-${version}.tgz`]);
});
