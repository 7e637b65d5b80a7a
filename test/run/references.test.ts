// References inside a value: which ones exist, which are rejected, and the result.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UsageError } from '../../src/platform/errors.ts';
import { fillTemplates, parseTemplate } from '../../src/run/references.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';

const fill = (text: string, values: Readonly<Record<string, string>>): string | undefined => {
  const parsed = parseTemplate('A', text, 'here');
  assert.ok(parsed);
  const lent = new Map(parsed.wanted.map(({ name, path }) => [name, new Secret(values[path] ?? '')]));
  const filled = fillTemplates([parsed.template], lent);
  assert.deepEqual([...filled.keys()], ['A']);
  return filled.get('A')?.reveal();
};

test('each reference is replaced by its value, and everything else stays', () => {
  const values = { 'a/b': 'x{{leasehold://c}}$&', c: "é/'()*!@:" };
  assert.equal(fill('{{leasehold://a/b}}-{{ leasehold://c }}-{{x}}', values), `${values['a/b']}-${values.c}-{{x}}`);
  assert.equal(fill('u:{{leasehold://c|url}}@h', values), 'u:%C3%A9%2F%27%28%29%2A%21%40%3A@h');
  const parsed = parseTemplate('A', '{{leasehold://a/b?version=2}}', 'here');
  assert.deepEqual(parsed?.wanted, [{ name: 'A[1]', path: 'a/b', version: 2 }]);
});

test('a text without references is returned as null, and a malformed reference is rejected', () => {
  for (const text of ['', 'plain', '{{x}}', '{{ lease }}']) assert.equal(parseTemplate('A', text, 'here'), null);
  for (const text of [
    '{{leasehold:/a}}',
    '{{LEASEHOLD://a}}',
    '{{leasehold://a/../b}}',
    '{{leasehold://a | base64}}',
    '{{leasehold://a}} leasehold://b',
  ]) {
    assert.throws(
      () => parseTemplate('A', text, 'here'),
      (error) => error instanceof UsageError && /^here: /.test(error.message),
    );
  }
});
