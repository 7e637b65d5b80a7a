// Conventions of the source files that biome does not check.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSources, type Source } from './source.ts';

interface Habit {
  readonly claim: string;
  readonly files: readonly Source[];
  readonly breach: (source: Source) => string | undefined;
}

const MAX_FILE_LINES = 400;
const MAX_COMMENT_COLUMNS = 120;
const src = readSources(['src', 'console/src'], ['.ts', '.tsx', '.mjs']);
const tests = readSources(['test']);
const others = readSources(['bench', 'scripts']);
const everything = readSources(
  ['src', 'test', 'bench', 'scripts', 'docs', '.ci'],
  ['.ts', '.mjs', '.md', '.py', '.json', '.sql', '.ci/run'],
);

const inText = (pattern: RegExp) => (source: Source) => pattern.exec(source.text)?.[0];
const inCode = (pattern: RegExp) => (source: Source) => pattern.exec(source.code)?.[0];
const inName = (pattern: RegExp) => (source: Source) => pattern.exec(source.name)?.[0];
const exportedTypes = ({ code }: Source): string[] =>
  [...code.matchAll(/^export (?:abstract )?(?:class|enum|interface|type) (\w+)/gm)].map(([, name = '']) => name);
/** The types of the HTTP API have the names that its users know; memory may have another form of the same thing. */
const own = src.filter(({ name }) => name !== 'src/api/types.ts');
const exporters = Map.groupBy(
  own.flatMap((source) => exportedTypes(source).map((name) => ({ name, file: source.name }))),
  ({ name }) => name,
);

const HABITS: readonly Habit[] = [
  {
    claim: `no file is longer than ${MAX_FILE_LINES} lines`,
    files: [...src, ...tests, ...others].filter(({ name }) => /\.tsx?$/.test(name)),
    breach: ({ text }) => {
      const lines = text.trimEnd().split('\n').length;
      return lines > MAX_FILE_LINES ? `${lines} lines` : undefined;
    },
  },
  {
    claim: 'every file of src begins with a comment about its subject',
    files: src,
    breach: ({ text }) => (/^(?:\/\/ |\/\*\*)/.test(text) ? undefined : text.slice(0, 40)),
  },
  {
    claim: 'no file of src contains a reminder of unfinished work',
    files: src,
    breach: inText(/\b(?:TODO|FIXME|XXX|HACK)\b/),
  },
  {
    claim: 'no file of src suppresses a check',
    files: src,
    breach: inText(/@ts-(?:ignore|expect-error|nocheck)|biome-ignore|node:coverage/),
  },
  {
    claim: 'no file of src has a generic name',
    files: src,
    breach: inName(/util|helper|manager|service|(?:^|\/)(?:index|common|misc|shared)\./i),
  },
  {
    claim: 'files are named in lower case, with hyphens between words',
    files: [...src, ...tests],
    breach: ({ name }) =>
      /^(?:[a-z0-9-]+\/)+[a-z0-9-]+(?:(?:\.long|\.weekly)?\.test)?\.tsx?$/.test(name) ? undefined : name,
  },
  {
    claim: 'no file contains a path of a developer’s machine',
    files: everything,
    breach: inText(/(?<![\w.~*}$:-])\/(?:home|Users|root|work|mnt|tmp|private\/tmp)\/\w|\b[A-Z]:\\\w/),
  },
  {
    claim: 'no test is skipped, deferred or run alone',
    files: tests,
    breach: inCode(/\b(?:test|it|t|suite|describe)\.(?:skip|todo|only)\b|\b(?:skip|todo|only)\s*:\s*(?!false\b)\S/),
  },
  {
    // WHY: once the tests that are registered have ended, Node runs the file's clean-up and cancels those that follow.
    claim: 'no test file awaits anything at its top level after its first test',
    files: tests,
    breach: ({ code }) => {
      const [, ...afterFirst] = code.split(/^ *test\(/m);
      return /^(?:(?:const|let) .+ = |for )?await .*/m.exec(afterFirst.join('test('))?.[0];
    },
  },
  {
    claim: 'no test asserts an absolute upper limit of time, which a busy machine exceeds',
    files: tests,
    breach: inCode(/(?:performance\.now\(\) - \w+|\b(?:ms|seconds|elapsed|took(?:Ms)?))\)? <=? [\d_]+\s*[,;)&|]/),
  },
  {
    claim: `no comment is wider than ${MAX_COMMENT_COLUMNS} columns`,
    files: [...src, ...tests, ...others].filter(({ name }) => name.endsWith('.ts')),
    breach: ({ text }) =>
      text.split('\n').find((line) => line.length > MAX_COMMENT_COLUMNS && /^\s*(?:\/\/|\/?\*)/.test(line)),
  },
  {
    claim: 'no two files of src export types of the same name, except the types of the HTTP API',
    files: own,
    breach: (source) =>
      exportedTypes(source).find((name) => (exporters.get(name) ?? []).some(({ file }) => file !== source.name)),
  },
];

for (const { claim, files, breach } of HABITS) {
  test(claim, () => {
    const found = files.flatMap((source) => {
      const what = breach(source);
      return what === undefined ? [] : [`${source.name}: ${what}`];
    });
    assert.deepEqual(found, []);
  });
}
