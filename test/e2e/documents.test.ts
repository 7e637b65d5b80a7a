/** Links of the documents point to existing files and headings, and named files exist. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { ROOT } from '../conventions/source.ts';

const DOCUMENTS = globSync(['*.md', 'docs/*.md'], { cwd: ROOT }).sort();
const read = (name: string): string => readFileSync(join(ROOT, name), 'utf8');

/** The anchor of a heading: lower case, without punctuation, blanks as hyphens. */
function anchorsOf(markdown: string): Set<string> {
  return new Set(
    [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

/** Broken links. */
function deadLinks(name: string, markdown: string): string[] {
  return [...markdown.matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)/g)].flatMap(([link, target = '', anchor]) => {
    const file = target === '' ? name : join(dirname(name), target);
    const isThere = existsSync(join(ROOT, file)) && (anchor === undefined || anchorsOf(read(file)).has(anchor));
    return isThere ? [] : [`${name}: ${link}`];
  });
}

/** Named project files that do not exist; `…` and `<name>` are placeholders. */
function missingFiles(name: string, markdown: string): string[] {
  const named = markdown.matchAll(/(?<![\w/.-])(?:src|test|scripts|docs|bench|\.ci)\/[\w./-]+/g);
  return [...named].flatMap(([file]) => (existsSync(join(ROOT, file.replace(/\.$/, ''))) ? [] : [`${name}: ${file}`]));
}

test('every link of the documents points to an existing file and heading', () => {
  assert.ok(DOCUMENTS.includes('README.md') && DOCUMENTS.includes('docs/architecture.md'));
  assert.deepEqual(deadLinks('README.md', '[a](docs/nowhere.md) [b](README.md#nowhere)').length, 2);
  assert.deepEqual(
    DOCUMENTS.flatMap((name) => deadLinks(name, read(name))),
    [],
  );
});

test('every file that the documents name exists', () => {
  assert.deepEqual(missingFiles('README.md', 'see `src/core/nowhere.ts`.'), ['README.md: src/core/nowhere.ts']);
  assert.deepEqual(
    DOCUMENTS.flatMap((name) => missingFiles(name, read(name))),
    [],
  );
});
