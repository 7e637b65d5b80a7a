// Tests the JSON source: strict parsing, line numbers, and errors that never quote the file.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson } from '../../src/cli/import/json.ts';
import { readJsonFile } from '../../src/cli/import/json-source.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { assertGrowth } from '../kit/growth.ts';
import { runs } from '../kit/property.ts';

const drafts = (text: string) =>
  readJsonFile(text, 'a.json').drafts.map(({ names, value, where }) => [names.join('/'), value.reveal(), where]);

test('members of objects become names, and numbers, booleans and arrays are kept as written', () => {
  const text = `{
    "db": { "password": "p\\u0061ss", "port": 5432 },
    "big": 12345678901234567890,
    "exact": 1.10,
    "on": true,
    "hosts": [ "a", {"b": 1} ]
  }`;
  assert.deepEqual(drafts(text), [
    ['db/password', 'pass', 'a.json:2'],
    ['db/port', '5432', 'a.json:2'],
    ['big', '12345678901234567890', 'a.json:3'],
    ['exact', '1.10', 'a.json:4'],
    ['on', 'true', 'a.json:5'],
    ['hosts', '[ "a", {"b": 1} ]', 'a.json:6'],
  ]);
});

test('null and empty objects are skipped and reported', () => {
  const { drafts: none, skipped } = readJsonFile('{"a":null,\n"b":{}}', 'a.json');
  assert.deepEqual(none, []);
  assert.deepEqual(skipped, [
    { where: 'a.json:1', reason: 'it is null', kind: 'empty' },
    { where: 'a.json:2', reason: 'it is an empty object', kind: 'empty' },
  ]);
});

test('keys such as __proto__ are ordinary keys', () => {
  const text = '{"__proto__":{"polluted":"1"},"constructor":"2","toString":"3"}';
  assert.deepEqual(
    drafts(text).map(([names]) => names),
    ['__proto__/polluted', 'constructor', 'toString'],
  );
  assert.equal('polluted' in {}, false);
});

const INVALID: readonly [text: string, rule: RegExp][] = [
  ['{"a":1,"a":2}', /:1: .*same key twice/],
  ['{"a":1,\n"\\u0061":2}', /:2: .*same key twice/],
  ['[1]', /must be an object/],
  ['"a"', /must be an object/],
  ['', /a value was expected/],
  ['{"a":1} x', /nothing may follow/],
  ['{"a":1,}', /a key in double quotes/],
  ["{'a':1}", /a key in double quotes/],
  ['{"a" 1}', /: was expected/],
  ['{"a":1 "b":2}', /, was expected/],
  ['{"a":01}', /, was expected/],
  ['{"a":.5}', /a value was expected/],
  ['{"a":NaN}', /a value was expected/],
  ['{"a":"x', /not closed/],
  ['{"a":"x\\', /not closed/],
  ['{"a":"x\ny"}', /control character/],
  ['{"a":"\\x41"}', /invalid escape/],
  ['{"a":1} // no', /nothing may follow/],
  ['{"a":1', /, was expected/],
];

for (const [text, rule] of INVALID) {
  test(`is rejected with its rule: ${JSON.stringify(text)}`, () => {
    assert.throws(
      () => readJsonFile(text, 'a.json'),
      (error) => error instanceof UsageError && rule.test(error.message),
    );
  });
}

test('an error never repeats content of the file', () => {
  for (const text of ['{"a":hunter2}', '{"a":"hunter2\\q"}', '{"hunter2":1,"hunter2":2}', '{"a":"hunter2"hunter2}']) {
    assert.throws(
      () => readJsonFile(text, 'a.json'),
      (error) => error instanceof UsageError && !`${error.message}${error.hint}`.includes('hunter2'),
    );
  }
});

test('nesting is bounded before the stack overflows', () => {
  for (const open of ['[', '{"a":']) {
    assert.throws(() => parseJson(open.repeat(200_000), 'a.json'), /more than 64 levels/);
  }
});

test('parsing time grows linearly with the file', () => {
  const textOf = (count: number) =>
    `{${Array.from({ length: count }, (_, at) => `"key ${at}": "${'x'.repeat(30)}\\n"`).join(',\n')}}`;
  assert.equal(drafts(textOf(20_000)).length, 20_000);
  assertGrowth((count) => drafts(textOf(count)), { small: 4000, times: 10, limit: 40 });
});

test('any JSON is parsed as JSON.parse parses it', () => {
  const plain = (value: ReturnType<typeof parseJson>): unknown => {
    if (value.kind === 'object')
      return Object.fromEntries([...value.members].map(([key, member]) => [key, plain(member)]));
    if (value.kind === 'array') return value.items.map(plain);
    return value.kind === 'string' ? value.value : JSON.parse(value.text);
  };
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      assert.equal(JSON.stringify(plain(parseJson(text, 'a.json'))), JSON.stringify(JSON.parse(text)));
    }),
    runs(500),
  );
});
