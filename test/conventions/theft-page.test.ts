// docs/theft.md lists attempts that are made, and SECURITY.md has their number. That each attempt is listed is checked
// where it is made, in test/hostile/theft-fixture.ts.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { ROOT, readSources } from './source.ts';

const read = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');
const attempts = [...read('docs/theft.md').matchAll(/^\| (?!attempt \|)([^|]+) \| ([^|]+) \|$/gm)];
const sources = readSources(['test/hostile'], ['.test.ts']).map(({ text }) => text);

test('docs/theft.md lists no attempt that is not made', () => {
  // The name of a coding is inserted.
  const isMade = (name: string) =>
    sources.some((text) => text.includes(name) || text.includes(name.replace(/ with \w+ /, () => ` with \${coding} `)));
  assert.deepEqual(
    attempts.map(([, name = '']) => name).filter((name) => !isMade(name)),
    [],
  );
});

test('SECURITY.md has the number of attempts, which is 40 or more at both doors', () => {
  const both = attempts.filter(([, , doors]) => doors === 'one call, base URL').length;
  assert.ok(both >= 40);
  assert.ok(read('SECURITY.md').includes(`Tests try to get it in ${attempts.length} ways, ${both} of them`));
});
