// .env files and references: parsing with byte positions, and errors that name the line and nothing of its content.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { UsageError } from '../../src/platform/errors.ts';
import { type Assignment, parseEnvFile, readEnvFile } from '../../src/run/env-file.ts';
import {
  isReference,
  parseReference,
  parseSource,
  parseUseReference,
  writeReference,
} from '../../src/run/references.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { anyText, runs } from '../kit/property.ts';

const read = (text: string): Assignment[] => parseEnvFile(Buffer.from(text), '.env');
const pairs = (text: string): [string, string][] => read(text).map(({ name, value }) => [name, value.reveal()]);

const ROWS: readonly [claim: string, text: string, pairs: string[]][] = [
  ['comments and empty lines', '# a\n\n  # b\nA=1\n \t\n', ['A', '1']],
  ['export, blanks around the sign, and no line end at the end', 'export A = 1\n  B= 2 ', ['A', '1', 'B', '2']],
  ['line ends of any system', 'A=1\r\nB=2\rC=3\n', ['A', '1', 'B', '2', 'C', '3']],
  [
    'comments behind values, and # inside words',
    'A=1 # one\nB=p#q\nC=#c\nD="x#y" # z',
    ['A', '1', 'B', 'p#q', 'C', '', 'D', 'x#y'],
  ],
  ['empty values', 'A=\nB=""\nC=\'\'', ['A', '', 'B', '', 'C', '']],
  ['single quotes and backticks as they are', "A='$x \\n \"q\"'\nB=`it's`", ['A', '$x \\n "q"', 'B', "it's"]],
  ['escapes in double quotes', String.raw`A="a\nb\t\"c\" \\ \$ \d"`, ['A', 'a\nb\t"c" \\ $ \\d']],
  ['nothing expanded', 'A=$B $(C) `D`\nB="$A"', ['A', '$B $(C) `D`', 'B', '$A']],
  ['values of several lines', 'A="1\r\n2\n3"\nB=\'x\ny\'\n', ['A', '1\n2\n3', 'B', 'x\ny']],
  ['a byte order mark, and letters beyond ASCII', '\ufeffA=grüßà\nB="à "', ['A', 'grüßà', 'B', 'à ']],
  ['equal signs in values', 'A=b=c==', ['A', 'b=c==']],
  ['the same name twice, in order', 'A=1\nA=2', ['A', '1', 'A', '2']],
];
test('a file is read as its names and values, in order', () => {
  for (const [claim, text, expected] of ROWS) assert.deepEqual(pairs(text).flat(), expected, claim);
});

test('a value is not shown when it is printed', () => {
  assert.equal(JSON.stringify(read('A=hunter2')).includes('hunter2'), false);
});

const BROKEN: readonly [text: string, message: string][] = [
  ['A=1\nhunter2\n', '.env, line 2: must be NAME=value or a comment'],
  ['A="x\ny"\n\nB="hunter2', '.env, line 4: a quote is opened and never closed'],
  ['\n\nA="hunter2"x', '.env, line 3: something follows the closing quote'],
  ['A-B C=hunter2', '.env, line 1: must be NAME=value or a comment'],
  ['1A=hunter2', '.env, line 1: must be NAME=value or a comment'],
];
test('an error names the file, the line and the rule, never the content', () => {
  for (const [text, message] of BROKEN) assert.throws(() => read(text), { name: 'UsageError', message });
  const bytes = Buffer.concat([Buffer.from('A=1\nB='), Buffer.from([0xff, 0xfe])]);
  assert.throws(() => parseEnvFile(bytes, '.env'), { message: '.env, line 2: is not UTF-8' });
});

test('spans are byte offsets: a value is replaced and every other byte stays', () => {
  const text = '\ufeff# ä\r\nexport A = "grüß\r\ngott" # c\r\nB=ü # d\nC=3';
  const bytes = Buffer.from(text);
  const [a, b, c] = parseEnvFile(bytes, '.env');
  assert.deepEqual([a?.line, b?.line, c?.line], [2, 4, 5]);
  const spans = [c, b, a].map((assignment) => assignment?.valueSpan ?? [0, 0]);
  let changed = bytes;
  for (const [from, to] of spans)
    changed = Buffer.concat([changed.subarray(0, from), Buffer.from('X'), changed.subarray(to)]);
  assert.equal(changed.toString(), '\ufeff# ä\r\nexport A = X # c\r\nB=X # d\nC=X');
  assert.equal(bytes.subarray(...(b?.lineSpan ?? [0, 0])).toString(), 'B=ü # d\n');
});

test('fuzzing: quoted text is read back, and any text is parsed or rejected', () => {
  const value = anyText(20).map((text) => text.toWellFormed().replaceAll('\r', ''));
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const lines = values.map((one, at) => `V${at}="${one.replaceAll(/[\\"$]/g, String.raw`\$&`)}"\n`);
      assert.deepEqual(
        pairs(lines.join('')),
        values.map((one, at) => [`V${at}`, one]),
      );
    }),
    runs(300),
  );
  const marks = fc.array(fc.constantFrom('A', '=', '"', "'", '`', '#', '\\', '\n', '\r', ' ', 'é', 'export '), {
    maxLength: 30,
  });
  fc.assert(
    fc.property(marks, (all) => {
      const bytes = Buffer.from(all.join(''));
      let assignments: Assignment[] = [];
      try {
        assignments = parseEnvFile(bytes, '.env');
      } catch (error) {
        assert.equal(error instanceof UsageError, true);
      }
      for (const { valueSpan, lineSpan } of assignments)
        assert.equal(lineSpan[0] < valueSpan[0] && valueSpan[0] <= valueSpan[1] && valueSpan[1] <= lineSpan[1], true);
    }),
    runs(200, 2000),
  );
});

test('a file that is missing or has no end is rejected in one line', async (t) => {
  const directory = temporaryDirectory(t);
  await assert.rejects(readEnvFile(join(directory, 'none')), {
    message: `${join(directory, 'none')}: cannot be read (ENOENT)`,
  });
  await assert.rejects(readEnvFile(directory), { message: `${directory}: cannot be read (EISDIR)` });
  await assert.rejects(readEnvFile('/dev/zero'), { message: '/dev/zero: has more than 4 MiB' });
  writeFileSync(join(directory, '.env'), 'A=1');
  assert.equal((await readEnvFile(join(directory, '.env')))[0]?.name, 'A');
});

test('a reference is a complete value, with a version or without', () => {
  const both = ['leasehold://prod/db/password', 'leasehold://a@b:c+d=e~f?version=12'];
  for (const text of both) assert.equal(parseReference(text, 'A').path, text.slice(12).split('?')[0]);
  assert.equal(writeReference('a/b', false), 'leasehold://a/b');
  assert.equal(parseUseReference(writeReference('a/b', true), 'A'), 'a/b');
  assert.equal(parseUseReference('leasehold://a/b?version=1', 'A'), null);
  assert.deepEqual(parseReference('leasehold://a?version=12', 'A'), { path: 'a', version: 12 });
  assert.deepEqual(parseSource('a/b?version=2', 'A'), { path: 'a/b', version: 2 });
  assert.deepEqual(parseSource('leasehold://a/b', 'A'), { path: 'a/b', version: null });
  assert.equal(isReference('leasehold://a'), true);
  assert.equal(isReference('postgres://u:leasehold://a@h'), false);
});

test('a malformed reference is rejected and not repeated', () => {
  const texts = [
    'leasehold:/a',
    'LEASEHOLD://a',
    ' leasehold://a',
    'leasehold://',
    'leasehold:///a',
    'leasehold://a/../b',
  ];
  const versions = [
    '?version=0',
    '?version=x',
    '?version=',
    '?v=1',
    '?',
    '?version=1?version=2',
    '?version=99999999999999999999',
  ];
  for (const text of [...texts, ...versions.map((version) => `leasehold://a${version}`), 'leasehold://a b']) {
    assert.equal(isReference(text), true, text);
    assert.throws(
      () => parseReference(text, '.env, line 3'),
      (error: UsageError) => /^\.env, line 3: /.test(error.message) && !error.message.includes(`${text} `),
      text,
    );
  }
});
