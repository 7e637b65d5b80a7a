// Tests the JSON source: strict parsing, locations, and errors that never quote the file.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, readJsonFile } from '../../src/cli/import/json.ts';
import { UsageError } from '../../src/platform/errors.ts';
import { assertGrowth } from '../kit/growth.ts';
import { runs } from '../kit/property.ts';

const drafts = (text: string) =>
  readJsonFile(text, 'a.json').drafts.map(({ names, value, where }) => [names.join('/'), value.reveal(), where]);

test('members of objects become names, and numbers and booleans are kept as written, also in arrays', () => {
  const text = `{
    "db": { "password": "p\\u0061ss", "port": 5432 },
    "big": 12345678901234567890,
    "exact": 1.10,
    "on": true,
    "hosts": [ "a", {"b": 1.0} ]
  }`;
  assert.deepEqual(drafts(text), [
    ['db/password', 'pass', 'a.json › db › password'],
    ['db/port', '5432', 'a.json › db › port'],
    ['big', '12345678901234567890', 'a.json › big'],
    ['exact', '1.10', 'a.json › exact'],
    ['on', 'true', 'a.json › on'],
    ['hosts', '["a",{"b":1.0}]', 'a.json › hosts'],
  ]);
});

test('null and empty objects are skipped and reported', () => {
  const { drafts: none, skipped } = readJsonFile('{"a":null,\n"b":{}}', 'a.json');
  assert.deepEqual(none, []);
  assert.deepEqual(skipped, [
    { where: 'a.json › a', reason: 'it is null', kind: 'empty' },
    { where: 'a.json › b', reason: 'it is an empty object', kind: 'empty' },
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
  ['{"a":1,"a":2}', /same key twice/],
  ['{"a":1,\n"\\u0061":2}', /same key twice/],
  ['{"a":{"b":1,"c":"\\"x\\":"},"d":1,"a":{"b":1}}', /same key twice/],
  ['[{"a":1,"a": 1}]', /same key twice/],
  ['[1]', /must be an object/],
  ['1', /must be an object/],
  ['"a"', /must be an object/],
  ['', /not strict JSON/],
  ['{"a":1} x', /not strict JSON/],
  ['{"a":1,\n}', /a\.json:2: is not strict JSON/],
  ["{'a':1}", /not strict JSON/],
  ['{"a":NaN}', /not strict JSON/],
  ['{"a":"x', /not strict JSON/],
  ['{"a":"x\ny"}', /a\.json:1: is not strict JSON/],
  ['{"a":1} // no', /not strict JSON/],
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

test('deep nesting is an error or a value without a path, and no crash', () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  assert.throws(() => parseJson(deep(500_000), 'a.json'), /a\.json: is nested deeper than 1000 levels/);
  const [[names, value] = []] = drafts(deep(100));
  assert.deepEqual([names, value], ['a/'.repeat(64).slice(0, -1), deep(36)]);
});

test('a file with more values than a vault has is refused before it is parsed', () => {
  const list = (count: number, value: string) => `{"a":[${`${value},`.repeat(count)}${value}]}`;
  for (const value of ['1', '{}', '""', '[]']) {
    assert.throws(() => parseJson(list(1_000_000, value), 'a.json'), /a\.json: has more than 1000000 values; import/);
  }
  // Keeping the digits of every number takes far longer for each value.
  assert.throws(() => parseJson(list(100_000, '1.0'), 'a.json'), /has more than 100000 values and a number of another/);
});

test('numbers keep their digits, whatever their form', () => {
  const forms = ['12345678901234567890', '1.0', '1e5', '1E5', '-0', '1e+21', '0.10', '5', '-1.5'];
  const text = `{${forms.map((form, at) => `"k${at}":${form}`).join(',')}}`;
  assert.deepEqual(
    drafts(text).map(([, value]) => value),
    forms,
  );
});

test('parsing time grows linearly with the file', () => {
  const textOf = (count: number) =>
    `{${Array.from({ length: count }, (_, at) => `"key ${at}": "${'x'.repeat(30)}\\n"`).join(',\n')}}`;
  assert.equal(drafts(textOf(20_000)).length, 20_000);
  assertGrowth((count) => drafts(textOf(count)), { small: 4000, times: 10, limit: 40 });
});

test('any JSON is parsed as JSON.parse parses it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.constantFrom(0, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      assert.equal(JSON.stringify(parseJson(text, 'a.json')), JSON.stringify(JSON.parse(text)));
    }),
    runs(500),
  );
});
