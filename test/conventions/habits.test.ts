// How the files of this project are written. Each habit is a row with a sample that breaks it, so that the check can fail too.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type Source, toSource } from './source.ts';

interface Habit {
  readonly claim: string;
  readonly files: readonly Source[];
  readonly breach: (source: Source) => string | undefined;
  readonly broken: readonly Source[];
}

const LONGEST_FILE = 250;
const src = readSources(['src']);
const tests = readSources(['test']);
const everything = readSources(
  ['src', 'test', 'bench', 'scripts', 'docs', '.ci'],
  ['.ts', '.mjs', '.md', '.py', '.json', '.sql', '.ci/run'],
);

const inText = (pattern: RegExp) => (source: Source) => pattern.exec(source.text)?.[0];
const inCode = (pattern: RegExp) => (source: Source) => pattern.exec(source.code)?.[0];
const inName = (pattern: RegExp) => (source: Source) => pattern.exec(source.name)?.[0];
const sample = (text: string, name = 'src/core/path.ts') => toSource(name, text);
// The words are put together here, so that this file does not contain what it looks for.
const joined = (...parts: string[]) => parts.join('');

const HABITS: readonly Habit[] = [
  {
    claim: `no file of src is longer than ${LONGEST_FILE} lines`,
    files: src,
    breach: ({ text }) => {
      const lines = text.trimEnd().split('\n').length;
      return lines > LONGEST_FILE ? `${lines} lines` : undefined;
    },
    broken: [sample('a;\n'.repeat(LONGEST_FILE + 1))],
  },
  {
    claim: 'every file of src begins by saying what it owns',
    files: src,
    breach: ({ text }) => (/^(?:\/\/ |\/\*\*)/.test(text) ? undefined : text.slice(0, 40)),
    broken: [sample("import { a } from './a.ts';")],
  },
  {
    claim: 'no file of src holds a reminder of work left undone',
    files: src,
    breach: inText(/\b(?:TODO|FIXME|XXX|HACK)\b/),
    broken: ['TODO', 'FIXME', 'XXX', 'HACK'].map((word) => sample(`// ${word}: later`)),
  },
  {
    claim: 'no file of src silences a check',
    files: src,
    breach: inText(/@ts-(?:ignore|expect-error|nocheck)|biome-ignore|node:coverage/),
    broken: ['@ts-ignore', '@ts-expect-error', '@ts-nocheck', 'biome-ignore lint: x'].map((word) =>
      sample(`// ${word}`),
    ),
  },
  {
    claim: 'no file of src casts to any',
    files: src,
    breach: inCode(/\bas\s+any\b|<any>|[:,|&]\s*any\b(?!\s*:)|\bany\[\]/),
    broken: ['x as any', 'f<any>(x)', 'const x: any = 1', 'let x: Map<string, any>', 'x as any[]'].map((text) =>
      sample(text),
    ),
  },
  {
    claim: 'no file of src exports a default',
    files: src,
    breach: inCode(/\bexport\s+default\b|\bas\s+default\b/),
    broken: [sample('export default {};'), sample('export { a as default };')],
  },
  {
    claim: 'no file of src is named after nothing in particular',
    files: src,
    breach: inName(/util|helper|manager|service|(?:^|\/)(?:index|common|misc|shared)\./i),
    broken: ['pathUtils', 'helpers', 'keymanager', 'service', 'index'].map((name) => sample('', `src/core/${name}.ts`)),
  },
  {
    claim: 'files are named in lower case, with hyphens between words',
    files: [...src, ...tests],
    breach: ({ name }) => (/^(?:[a-z0-9-]+\/)+[a-z0-9-]+(?:(?:\.long)?\.test)?\.ts$/.test(name) ? undefined : name),
    broken: [sample('', 'src/core/PathGrammar.ts'), sample('', 'src/core/path_grammar.ts')],
  },
  {
    claim: 'no file names a path of somebody’s machine',
    files: everything,
    breach: inText(/(?<![\w.~*}$:-])\/(?:home|Users|root|work|mnt|tmp|private\/tmp)\/\w|\b[A-Z]:\\\w/),
    broken: ['home', 'Users', 'root', 'work', 'tmp'].map((top) => sample(joined(`cd '/`, top, `/ann'`))),
  },
  {
    claim: 'no test is skipped, put off or run alone',
    files: tests,
    breach: inCode(/\b(?:test|it|t|suite|describe)\.(?:skip|todo|only)\b|\b(?:skip|todo|only)\s*:\s*(?!false\b)\S/),
    broken: ['skip', 'todo', 'only'].flatMap((word) =>
      [`test.${word}(f)`, `t.${word}()`, `test(a, { ${word}: true }, f)`].map((text) => sample(text)),
    ),
  },
  {
    claim: 'no test asserts that something takes less than an absolute time: a busy machine takes longer',
    files: tests,
    breach: inCode(/(?:performance\.now\(\) - \w+|\b(?:ms|seconds|elapsed|took(?:Ms)?))\)? <=? [\d_]+\s*[,;)&|]/),
    broken: ['performance.now() - startedAt < 5000', 'tookMs >= 190 && tookMs < 2000', 'seconds <= 5'].map((text) =>
      sample(`assert.ok(${text});`),
    ),
  },
];

for (const { claim, files, breach, broken } of HABITS) {
  test(claim, () => {
    const found = files.flatMap((source) => {
      const what = breach(source);
      return what === undefined ? [] : [`${source.name}: ${what}`];
    });
    assert.deepEqual(found, []);
  });

  test(`a breach is seen: ${claim}`, () => {
    for (const source of broken) assert.notEqual(breach(source), undefined, `${source.name}: ${source.text}`);
  });
}

test('there are files to hold the habits against', () => {
  assert.notEqual(src.length, 0);
  assert.notEqual(tests.length, 0);
  assert.equal(
    everything.some(({ name }) => name === '.ci/run'),
    true,
  );
});

test('the reader of source tells code from comments and literals in every file', () => {
  const unbalanced = [...src, ...tests].filter(({ code }) =>
    ['()', '[]', '{}'].some(([open = '', close = '']) => code.split(open).length !== code.split(close).length),
  );
  assert.deepEqual(
    unbalanced.map(({ name }) => name),
    [],
  );
});
