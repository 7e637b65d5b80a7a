// The command that runs all checks, on test files written by this test: which ones pass and which ones fail.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { ROOT } from './source.ts';

/** The variable would restrict the check to one store. */
const { LEASEHOLD_TEST_STORE: _, ...environment } = process.env;
const run = (name: string, more: Record<string, string> = {}) =>
  spawnSync(process.execPath, [path.join(ROOT, 'scripts/check.ts'), name], {
    encoding: 'utf8',
    env: { ...environment, ...more },
  });

const directory = mkdtempSync(path.join(tmpdir(), 'leasehold-check-'));
after(() => rmSync(directory, { recursive: true, force: true }));

function check(name: string, body: string) {
  const file = path.join(directory, `${name}.test.ts`);
  writeFileSync(file, `import { test } from 'node:test';\n${body}\n`);
  return run(file);
}

test('passing tests pass, and the output ends with the summary and a line for the store', () => {
  const { status, stdout, stderr } = check('green', `test('one', () => {});`);
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /✔ one .*\nsqlite {3}1 tests of 1 files ok\n[\d.]+ s, [\d.]+ s processor\n$/s);
});

test('a failing test fails the run', () => {
  assert.equal(check('failing', `test('one', () => { throw new Error('no'); });`).status, 1);
});

// Samples that the check must reject, assembled here so that they do not count as deferred tests.
for (const [word, state] of [
  ['skip', 'skipped'],
  ['todo', 'todo'],
] as const) {
  for (const body of [`test('one', { ${word}: true }, () => {});`, `test('one', (t) => t.${word}('no server'));`])
    test(`a test that is ${state} fails the run: ${body}`, () => {
      const { status, stdout } = check('unfinished', body);
      assert.equal(status, 1);
      assert.match(stdout, new RegExp(`✖ ${state}, and nothing here may be: "one"`));
    });
}

test('a test of the service runs on both stores, or only on the selected one', () => {
  const name = 'test/spec/entity-tags.test.ts';
  const both = run(name);
  assert.equal(both.status, 0, both.stdout + both.stderr);
  assert.match(
    both.stdout,
    /\nsqlite {3}\d+ tests of 1 files ok\npostgres \d+ tests of 1 files ok\n[\d.]+ s, [\d.]+ s processor\n$/,
  );
  const alone = run(name, { LEASEHOLD_TEST_STORE: 'postgres' });
  assert.match(alone.stdout, /duration_ms [\d.]+\npostgres \d+ tests of 1 files ok\n/);
});

test('a store without matching tests fails the run', () => {
  const { status, stdout } = run('test/conventions/package.test.ts', { LEASEHOLD_TEST_STORE: 'postgres' });
  assert.equal(status, 1);
  assert.match(stdout, /✖ no test ran\n[\s\S]*postgres 0 tests of 0 files FAILED/);
});

test('a name that is not a test is rejected before anything runs', () => {
  const { status, stdout, stderr } = run('test/nowhere.test.ts');
  assert.deepEqual([status, stdout, stderr], [1, '', 'no such test: test/nowhere.test.ts\n']);
});

test('tests run with the flags of the service', () => {
  const { status } = check('flags', `test('one', () => { if ('__proto__' in {}) throw new Error('it exists'); });`);
  assert.equal(status, 0);
});
