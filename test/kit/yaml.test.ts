// The YAML parser accepts the subset that compose.yaml uses and nothing ambiguous.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseYaml } from './yaml.ts';

test('mappings, sequences, scalars and anchors are parsed as YAML defines them', () => {
  const text = [
    '# a comment',
    'x-all: &all',
    '  image: a/b:1.2 # and another',
    '  flags: [a, --b=c]',
    'one:',
    '  <<: *all',
    '  image: "7700:7700"',
    '  list:',
    '    - ./a:/b:ro',
    '    - key: 1',
    '      other: true',
    'none:',
    'last: ""',
  ].join('\n');
  assert.deepEqual(parseYaml(text), {
    'x-all': { image: 'a/b:1.2', flags: ['a', '--b=c'] },
    one: { image: '7700:7700', flags: ['a', '--b=c'], list: ['./a:/b:ro', { key: '1', other: true }] },
    none: null,
    last: '',
  });
});

test('everything outside that subset is rejected with its line number', () => {
  for (const text of [
    'a: 1\na: 2',
    'a:\n   b: 1',
    ' a: 1',
    'a:\n\tb: 1',
    'a: 1 ',
    'a: 7700:7700',
    'a: yes',
    'a: {b: 1}',
    'a: |',
    "a: 'b'",
    'a: *b',
    'a: &b c',
    'a: !!str b',
    'a: b: c',
    'a: [b, [c]]',
    'a: "b\\n"',
    'a',
    '- a\nb: 1',
    '<<: *b',
    'a: 1\n  b: 2',
  ]) {
    assert.throws(() => parseYaml(text), /^Error: line \d+: /, text);
  }
});
