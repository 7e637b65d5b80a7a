// SECURITY.md names for each guarantee the tests that show it, and a test that cites a guarantee is named there.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT, readSources } from './source.ts';

const TEST_FILE = /\btest\/[\w/.-]+?\.test\.ts\b/g;
const page = readFileSync(path.join(ROOT, 'SECURITY.md'), 'utf8');
const section = page.split('\n## Guarantees\n')[1]?.split('\n## ')[0] ?? '';

/** The tests that the guarantee names, by its id, such as P7. */
const namedFor = new Map(
  section.split('\n### ').flatMap((part): [string, string[]][] => {
    const id = /^P\d+(?=\. )/.exec(part)?.[0];
    return id === undefined ? [] : [[id, part.match(TEST_FILE) ?? []]];
  }),
);

/** The guarantees that the first comment of a test cites. */
function citedBy(text: string): string[] {
  const head = text.split('\nimport ')[0] ?? '';
  return [...head.matchAll(/SECURITY\.md,((?:(?:,| and)? P\d+)+)/g)].flatMap(
    ([, ids = '']) => ids.match(/P\d+/g) ?? [],
  );
}

test('every guarantee has a number and names a test that shows it', () => {
  assert.deepEqual(
    [...namedFor.keys()],
    Array.from({ length: namedFor.size }, (_, index) => `P${index + 1}`),
  );
  assert.equal(namedFor.size, section.match(/^### /gm)?.length);
  assert.deepEqual(
    [...namedFor].filter(([, tests]) => tests.length === 0).map(([id]) => id),
    [],
  );
});

test('every test that SECURITY.md names exists', () => {
  const named = page.match(TEST_FILE) ?? [];
  assert.ok(named.length > 40);
  assert.deepEqual(
    named.filter((name) => !existsSync(path.join(ROOT, name))),
    [],
  );
});

test('a test that cites a guarantee is named there', () => {
  assert.deepEqual(citedBy('// SOURCE: SECURITY.md, P4, P5 and P10.\nimport'), ['P4', 'P5', 'P10']);
  const missing = readSources(['test'], ['.test.ts']).flatMap(({ name, text }) =>
    citedBy(text).flatMap((id) => (namedFor.get(id)?.includes(name) ? [] : [`${id}: ${name}`])),
  );
  assert.deepEqual(missing, []);
});
