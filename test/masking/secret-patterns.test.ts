// The table of patterns: each finds its examples and nothing in ordinary text, in linear time.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { holdsSecret, SECRET_PATTERNS } from '../../src/masking/secret-patterns.ts';
import { assertGrowth } from '../kit/growth.ts';
import { scaled } from '../kit/scale.ts';

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ALPHABETS: Readonly<Record<string, string>> = {
  an: `${LETTERS}0123456789`,
  up: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  hex: '0123456789abcdef',
  num: '123456789',
  b64: `${LETTERS}0123456789+/`,
  w: `${LETTERS}0123456789_-`,
  low: 'abcdefghijklmnopqrstuvwxyz0123456789',
};

const LINES = readFileSync(path.join(import.meta.dirname, 'secret-patterns.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ name: line.slice(0, line.indexOf(' | ')), template: line.slice(line.indexOf(' | ') + 3) }));

/** Random characters that are the same in each run. */
function expand(template: string): string {
  let state = 7;
  const character = (alphabet: string): string => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return alphabet[(state >> 8) % alphabet.length] ?? '';
  };
  return template
    .replaceAll(/\\([nr\\])/g, (_, letter: string) => ({ n: '\n', r: '\r' })[letter] ?? '\\')
    .replaceAll(/\{([a-z0-9]+):(\d+)\}/g, (_, name: string, length: string) => {
      const alphabet = ALPHABETS[name] ?? assert.fail(name);
      return Array.from({ length: Number(length) }, () => character(alphabet)).join('');
    });
}

test('each pattern finds its examples, and none finds anything in ordinary text', () => {
  for (const { name, template } of LINES) {
    const text = expand(template);
    if (name === '-') assert.equal(holdsSecret(text), false, template);
    else
      assert.ok(
        SECRET_PATTERNS.some((each) => each.name === name && text.match(each.pattern)),
        template,
      );
  }
  const examples = new Set(LINES.map(({ name }) => name));
  assert.deepEqual(
    SECRET_PATTERNS.filter(({ name }) => !examples.has(name)),
    [],
  );
});

test('every pattern takes linear time', () => {
  const size = scaled(4, 8) * 1024;
  const parts = [
    ...SECRET_PATTERNS.map(({ keyword }) => keyword),
    ...LINES.map(({ template }) => template.replace(/\{\w+:\d+\}/g, 'aZ3kQ9xB7mN2pL5v').slice(0, -4)),
    'a',
    ':',
    '://',
    'a://a:',
    'a://a:a',
    'eyJ.',
    '-',
    ' ',
    '\n',
    '"',
    '\\n',
    '.',
    '/',
    '-----BEGIN A ',
    '-----BEGIN PRIVATE KEY-----',
    '-----BEGIN PRIVATE KEY-----\n',
  ];
  for (const part of new Set(parts)) {
    for (const filling of [part, `${part}aaaaaaaa`].slice(0, scaled(1, 2))) {
      const text = filling.repeat(Math.ceil(size / filling.length));
      const search = (length: number) => {
        for (const { pattern } of SECRET_PATTERNS) text.slice(0, length).match(pattern);
      };
      assertGrowth(search, { small: size / 8, times: 8, limit: 30, what: JSON.stringify(filling) });
    }
  }
});
