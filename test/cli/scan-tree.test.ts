// Tests which files are scanned: .gitignore, env files, and malicious trees.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { isIgnored, type MatchBudget, parsePatterns } from '../../src/cli/scan/ignore.ts';
import { type Skipped, type TreeOptions, walk } from '../../src/cli/scan/tree.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { assertGrowth } from '../kit/growth.ts';

const NEVER = new AbortController().signal;

function tree(scope: Scope, files: Readonly<Record<string, string | Buffer>>): string {
  const root = temporaryDirectory(scope);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), content);
  }
  return root;
}

async function scanTree(root: string, options: Partial<TreeOptions> = {}) {
  const skipped: Skipped = { large: 0, binary: 0, unreadable: [], notFollowed: [] };
  const files = await Array.fromAsync(
    walk({ root, usesIgnoreFiles: true, excluded: [], signal: NEVER, ...options }, skipped),
  );
  return { files: files.map(({ file }) => file), skipped };
}

const unbounded = (): MatchBudget => ({ left: Number.POSITIVE_INFINITY });

const PATTERNS: readonly [pattern: string, path: string, says: boolean | null][] = [
  ['a.txt', 'a.txt', true],
  ['a.txt', 'b/a.txt', true],
  ['/a.txt', 'b/a.txt', null],
  ['b/a.txt', 'b/a.txt', true],
  ['b/a.txt', 'c/b/a.txt', null],
  ['**/b/a.txt', 'c/b/a.txt', true],
  ['b/**/a.txt', 'b/a.txt', true],
  ['b/**/a.txt', 'b/c/d/a.txt', true],
  ['*.py[cod]', 'x.pyc', true],
  ['*.py[cod]', 'x.py', null],
  ['[!a].x', 'b.x', true],
  ['[!a].x', 'a.x', null],
  ['[a-c]?', 'b1', true],
  ['a*b*c', 'aXbYc', true],
  ['a*', 'b/ab/c', null],
  ['dist/', 'dist', null],
  ['*\n!keep', 'keep', false],
  ['# a.txt', '# a.txt', null],
  ['\\#a', '#a', true],
  ['a.txt ', 'a.txt', true],
  ['', 'a', null],
  ['/', 'a', null],
  ['[', '[', true],
  ['[a][[[', 'a[[[', true],
  ['a//', 'a', null],
  ['a', 'a', true],
  ['__proto__', '__proto__', true],
];

for (const [pattern, path, says] of PATTERNS) {
  test(`${JSON.stringify(pattern)} matches ${path} with ${says}`, () =>
    assert.equal(isIgnored(parsePatterns(pattern), path.split('/'), false, unbounded()), says));
}

test('git itself ignores the same files', (t) => {
  const names = [
    'a.log',
    'b/a.log',
    'dist/x',
    'b/dist/y',
    'docs/a.pdf',
    'docs/b/c.pdf',
    'keep.log',
    'x/y/z',
    'src/a.ts',
    'q[1].ts',
  ];
  const ignoring = '*.log\n!keep.log\n/dist/\ndocs/**/*.pdf\nx/*/z\nq\\[1].*\n';
  const root = tree(t, { '.gitignore': ignoring, ...Object.fromEntries(names.map((name) => [name, 'x'])) });
  execFileSync('git', ['init', '-q', root]);
  const kept = execFileSync('git', ['ls-files', '-o', '--exclude-standard', '-z'], { cwd: root, encoding: 'utf8' });
  return scanTree(root).then(({ files }) => assert.deepEqual(files.sort(), kept.split('\0').filter(Boolean).sort()));
});

test('patterns with many stars take bounded time', () => {
  const patterns = parsePatterns(Array.from({ length: 100 }, () => `${'a*'.repeat(100)}b`).join('\n'));
  const match = (length: number) => isIgnored(patterns, ['a'.repeat(length)], false, unbounded());
  assert.equal(match(255), null);
  assertGrowth(match, { small: 32, times: 8, limit: 64 * 4 });
});

test('parsing patterns takes linear time', () => {
  for (const odd of ['[', '/', '[]', ' ', '\\\\', '!']) {
    const parse = (length: number) => parsePatterns(`x${odd.repeat(length / odd.length)}x`);
    assertGrowth(parse, { small: 40_000, times: 8, limit: 30, what: odd });
  }
});

test('matching stops when its budget is spent, and returns null', () => {
  const patterns = parsePatterns(`aab\n*${'a'.repeat(100)}b\n*[${'b'.repeat(1000)}]`);
  assert.equal(isIgnored(patterns, ['aab'], false, unbounded()), true);
  const steps = { left: 5000 };
  assert.equal(isIgnored(patterns, ['a'.repeat(255)], false, steps), null);
  assert.ok(steps.left < 0 && steps.left > -1100, String(steps.left));
  assert.equal(isIgnored(patterns, ['aab'], false, steps), null);
});

test('patterns that exceed the budget are no longer followed, which is reported', async (t) => {
  const slow = Array.from({ length: 1900 }, () => `*${'a'.repeat(125)}b`).join('\n');
  const names = Array.from({ length: 300 }, (_, at) => `${'a'.repeat(250)}${at}`);
  const files = Object.fromEntries(names.map((name) => [`app/${name}`, 'x']));
  const ignoring = `z.txt\n${slow}`;
  const root = tree(t, { ...files, 'app/.gitignore': ignoring, 'app/z.txt': 'x', '.gitignore': 'y.txt', 'y.txt': 'x' });
  const { files: found, skipped } = await scanTree(root);
  assert.deepEqual(skipped.notFollowed, ['any further .gitignore file (their patterns take too long)']);
  assert.deepEqual([found.length, found.includes('app/z.txt'), found.includes('y.txt')], [303, true, false]);
});

test('a large ignore file is not followed, and the files that it names are scanned', async (t) => {
  const comment = `#${'c'.repeat(999)}\n`;
  for (const [count, isFollowed] of [
    [200, true],
    [300, false],
  ] as const) {
    const text = `a.ts\n${comment.repeat(count)}`;
    const { files, skipped } = await scanTree(tree(t, { 'd/.gitignore': text, 'd/a.ts': 'x' }));
    assert.deepEqual(skipped.notFollowed, isFollowed ? [] : ['d/.gitignore (larger than 256 KiB)']);
    assert.equal(files.includes('d/a.ts'), !isFollowed);
  }
});

test('env files are scanned although git ignores them; node_modules and .git are not', async (t) => {
  const root = tree(t, {
    '.gitignore': '.env*\nsecret.txt\nout/\n',
    '.env': 'A=1',
    'app/.env.local': 'A=1',
    'secret.txt': 'x',
    'a.ts': 'x',
    'out/.env': 'A=1',
    'node_modules/p/.env': 'A=1',
    '.git/config': 'x',
    'app/.gitignore': '!secret.txt\nb.ts\n',
    'app/secret.txt': 'x',
    'app/b.ts': 'x',
  });
  const { files } = await scanTree(root);
  assert.deepEqual(files, ['.env', '.gitignore', 'a.ts', 'app/.env.local', 'app/.gitignore', 'app/secret.txt']);
  const all = await scanTree(root, { usesIgnoreFiles: false });
  assert.ok(all.files.includes('out/.env') && all.files.includes('secret.txt') && !all.files.includes('.git/config'));
  assert.deepEqual((await scanTree(root, { excluded: ['app/', '.env'] })).files, ['.gitignore', 'a.ts']);
});

test('links and pipes are skipped, binary and large files are counted', async (t) => {
  const root = tree(t, {
    'a/b.txt': 'x',
    binary: Buffer.from('a\0b'),
    large: Buffer.alloc(1024 * 1024 + 1, 'a'),
    fits: Buffer.alloc(1024 * 1024, 'a'),
    empty: '',
  });
  symlinkSync('..', join(root, 'a', 'up'));
  symlinkSync('b.txt', join(root, 'a', 'link'));
  symlinkSync('nowhere', join(root, 'broken'));
  mkdirSync(join(root, 'z'));
  for (const name of ['pipe', 'z/.gitignore']) execFileSync('mkfifo', [join(root, name)]);
  const { files, skipped } = await scanTree(root);
  assert.deepEqual(files, ['empty', 'fits', 'a/b.txt']);
  assert.deepEqual(skipped, { large: 1, binary: 1, unreadable: [], notFollowed: [] });
});

test('a deeper tree is left at level 64 and reported', async (t) => {
  const root = tree(t, { [`${'d/'.repeat(70)}deep.txt`]: 'x', [`${'d/'.repeat(60)}.txt`]: 'x' });
  const { files, skipped } = await scanTree(root);
  assert.deepEqual([files.length, skipped.unreadable], [1, [`${'d/'.repeat(65)}`]]);
});

test('a file can be given instead of a directory, and a missing one is a usage error', async (t) => {
  const root = tree(t, { '.env': 'A=1', other: 'x' });
  assert.deepEqual((await scanTree(join(root, '.env'))).files, ['.env']);
  await assert.rejects(scanTree(join(root, 'missing')), /does not exist/);
});

test('an abort ends the scan between directories', async (t) => {
  const root = tree(t, { 'a/b': 'x' });
  await assert.rejects(scanTree(root, { signal: AbortSignal.abort(new Error('interrupted')) }), /interrupted/);
  chmodSync(root, 0o700);
});
