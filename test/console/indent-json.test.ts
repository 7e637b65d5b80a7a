// The indentation of JSON in a request that waits: it changes white space outside of strings and nothing else.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { indentJson } from '../../console/src/pages/approvals/indent-json.ts';
import { runs } from '../kit/property.ts';

test('it equals the standard indentation where that loses nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.equal(indentJson(JSON.stringify(value)), JSON.stringify(value, null, 2));
    }),
    runs(200),
  );
});

test('repeated names, digits and escapes stay as they were written', () => {
  assert.equal(
    indentJson('{"a":1,\t"a":1e400 ,"b":99999999999999999999,"c":"\\u0041\\"{,"}'),
    '{\n  "a": 1,\n  "a": 1e400,\n  "b": 99999999999999999999,\n  "c": "\\u0041\\"{,"\n}',
  );
  assert.equal(indentJson('[ { } , [\n] ]'), '[\n  {},\n  []\n]');
});

test('text that is not JSON is not indented, and a deep nesting does not grow without bound', () => {
  assert.throws(() => indentJson('{"a":1'), SyntaxError);
  const deep = '['.repeat(4000) + ']'.repeat(4000);
  assert.ok(indentJson(deep).length < 50 * deep.length);
});
