// Conventions of the source files. Each is a row with samples that violate it, which show that its check can fail.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type Source, toSource } from './source.ts';

interface Habit {
  readonly claim: string;
  readonly files: readonly Source[];
  readonly breach: (source: Source) => string | undefined;
  readonly broken: readonly Source[];
}

const MAX_FILE_LINES = 400;
const MAX_COMMENT_COLUMNS = 120;
const src = readSources(['src', 'console/src'], ['.ts', '.tsx', '.mjs']);
const tests = readSources(['test']);
/** What the rows about prose check. */
const PROSE = readSources(
  [
    ...['src', 'console/src', 'bench', 'deploy', 'docs', 'examples', 'scripts'],
    ...['CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md'],
  ],
  ['.ts', '.tsx', '.md', '.mjs', '.py', '.sh', '.yaml', '.yml'],
);
const everything = readSources(
  ['src', 'test', 'bench', 'scripts', 'docs', '.ci'],
  ['.ts', '.mjs', '.md', '.py', '.json', '.sql', '.ci/run'],
);

const inText = (pattern: RegExp) => (source: Source) => pattern.exec(source.text)?.[0];
const inCode = (pattern: RegExp) => (source: Source) => pattern.exec(source.code)?.[0];
const inName = (pattern: RegExp) => (source: Source) => pattern.exec(source.name)?.[0];
const exportedTypes = ({ code }: Source): string[] =>
  [...code.matchAll(/^export (?:abstract )?(?:class|enum|interface|type) (\w+)/gm)].map(([, name = '']) => name);
const exporters = Map.groupBy(
  src.flatMap((source) => exportedTypes(source).map((name) => ({ name, file: source.name }))),
  ({ name }) => name,
);
const sample = (text: string, name = 'src/core/path.ts') => toSource(name, text);
// Assembles a text at run time, so that this file does not match its own pattern.
const joined = (...parts: string[]) => parts.join('');

const HABITS: readonly Habit[] = [
  {
    claim: `no file of src is longer than ${MAX_FILE_LINES} lines`,
    files: src,
    breach: ({ text }) => {
      const lines = text.trimEnd().split('\n').length;
      return lines > MAX_FILE_LINES ? `${lines} lines` : undefined;
    },
    broken: [sample('a;\n'.repeat(MAX_FILE_LINES + 1))],
  },
  {
    claim: 'every file of src begins with a comment about its subject',
    files: src,
    breach: ({ text }) => (/^(?:\/\/ |\/\*\*)/.test(text) ? undefined : text.slice(0, 40)),
    broken: [sample("import { a } from './a.ts';")],
  },
  {
    claim: 'no file of src contains a reminder of unfinished work',
    files: src,
    breach: inText(/\b(?:TODO|FIXME|XXX|HACK)\b/),
    broken: ['TODO', 'FIXME', 'XXX', 'HACK'].map((word) => sample(`// ${word}: later`)),
  },
  {
    claim: 'no file of src suppresses a check',
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
    claim: 'no file of src has a generic name',
    files: src,
    breach: inName(/util|helper|manager|service|(?:^|\/)(?:index|common|misc|shared)\./i),
    broken: ['pathUtils', 'helpers', 'keymanager', 'service', 'index'].map((name) => sample('', `src/core/${name}.ts`)),
  },
  {
    claim: 'files are named in lower case, with hyphens between words',
    files: [...src, ...tests],
    breach: ({ name }) =>
      /^(?:[a-z0-9-]+\/)+[a-z0-9-]+(?:(?:\.long|\.weekly)?\.test)?\.tsx?$/.test(name) ? undefined : name,
    broken: [sample('', 'src/core/PathGrammar.ts'), sample('', 'src/core/path_grammar.ts')],
  },
  {
    claim: 'no file contains a path of a developer’s machine',
    files: everything,
    breach: inText(/(?<![\w.~*}$:-])\/(?:home|Users|root|work|mnt|tmp|private\/tmp)\/\w|\b[A-Z]:\\\w/),
    broken: ['home', 'Users', 'root', 'work', 'tmp'].map((top) => sample(joined(`cd '/`, top, `/ann'`))),
  },
  {
    claim: 'no test is skipped, deferred or run alone',
    files: tests,
    breach: inCode(/\b(?:test|it|t|suite|describe)\.(?:skip|todo|only)\b|\b(?:skip|todo|only)\s*:\s*(?!false\b)\S/),
    broken: ['skip', 'todo', 'only'].flatMap((word) =>
      [`test.${word}(f)`, `t.${word}()`, `test(a, { ${word}: true }, f)`].map((text) => sample(text)),
    ),
  },
  {
    // WHY: once the tests that are registered have ended, Node runs the file's clean-up and cancels those that follow.
    claim: 'no test file awaits anything at its top level after its first test',
    files: tests,
    breach: ({ code }) => {
      const [, ...afterFirst] = code.split(/^ *test\(/m);
      return /^(?:(?:const|let) .+ = |for )?await .*/m.exec(afterFirst.join('test('))?.[0];
    },
    broken: [
      'await start();',
      'const service = await start();',
      'const { a, b } = await start();',
      'for await (const a of b);',
    ].map((text) => sample(`test(a, () => {\n  b();\n});\n\n${text}\n`)),
  },
  {
    claim: 'no test asserts an absolute upper limit of time, which a busy machine exceeds',
    files: tests,
    breach: inCode(/(?:performance\.now\(\) - \w+|\b(?:ms|seconds|elapsed|took(?:Ms)?))\)? <=? [\d_]+\s*[,;)&|]/),
    broken: ['performance.now() - startedAt < 5000', 'tookMs >= 190 && tookMs < 2000', 'seconds <= 5'].map((text) =>
      sample(`assert.ok(${text});`),
    ),
  },
  {
    claim: `no comment is wider than ${MAX_COMMENT_COLUMNS} columns`,
    files: [...PROSE, ...tests].filter(({ name }) => name.endsWith('.ts')),
    breach: ({ text }) =>
      text.split('\n').find((line) => line.length > MAX_COMMENT_COLUMNS && /^\s*(?:\/\/|\/?\*)/.test(line)),
    broken: ['// ', ' * ', '  /** '].map((start) => sample(start.padEnd(MAX_COMMENT_COLUMNS + 1, 'x'))),
  },
  {
    claim: 'no two files of src export types of the same name',
    files: src,
    breach: (source) =>
      exportedTypes(source).find((name) => (exporters.get(name) ?? []).some(({ file }) => file !== source.name)),
    broken: [sample('export interface Store {}'), sample('export type UsageError = 1;')],
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

  test(`a violation is found: ${claim}`, () => {
    for (const source of broken) assert.notEqual(breach(source), undefined, `${source.name}: ${source.text}`);
  });
}

test('the conventions are checked on existing files', () => {
  assert.notEqual(src.length, 0);
  assert.notEqual(tests.length, 0);
  assert.notEqual(PROSE.length, 0);
  assert.equal(
    everything.some(({ name }) => name === '.ci/run'),
    true,
  );
});

test('the source reader separates code from comments and literals in every file', () => {
  const unbalanced = [...src, ...tests].filter(({ code }) =>
    ['()', '[]', '{}'].some(([open = '', close = '']) => code.split(open).length !== code.split(close).length),
  );
  assert.deepEqual(
    unbalanced.map(({ name }) => name),
    [],
  );
});
