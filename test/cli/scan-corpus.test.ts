// Tests the synthetic corpus of scan over several seeds: the expected finding of each line, recall and precision.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { findInText } from '../../src/cli/scan/text.ts';
import { SECRET_PATTERNS } from '../../src/masking/secret-patterns.ts';

const SEEDS = 20;
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const ALPHABETS: Readonly<Record<string, string>> = {
  an: `${LETTERS}0123456789`,
  al: LETTERS,
  up: 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567',
  hex: '0123456789abcdef',
  num: '123456789',
  b64: `${LETTERS}0123456789+/`,
  w: `${LETTERS}0123456789_-`,
  low: 'abcdefghijklmnopqrstuvwxyz0123456789',
};

interface Line {
  readonly isKnownWrong: boolean;
  /** Null when nothing may be found. */
  readonly rule: string | null;
  readonly file: string;
  readonly template: string;
}

const LINES: readonly Line[] = readFileSync(path.join(import.meta.dirname, 'scan-corpus.txt'), 'utf8')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => {
    const [, mark, rule = '', file = '', template = ''] = /^(! )?(\S+) \| (\S+) \| (.*)$/.exec(line) ?? [];
    assert.notEqual(template, '', line);
    return { isKnownWrong: mark !== undefined, rule: rule === '-' ? null : rule, file, template };
  });

/** Mulberry32, which gives the same numbers for a seed on every platform. */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The text of a line and its random parts. */
function expand(template: string, seed: number): { text: string; parts: string[] } {
  const next = generator(seed);
  const parts: string[] = [];
  const text = template
    .replaceAll(/\\([nr\\])/g, (_, letter: string) => ({ n: '\n', r: '\r' })[letter] ?? '\\')
    .replaceAll(/\{([a-z0-9]+):(\d+)\}/g, (_, name: string, length: string) => {
      const alphabet = ALPHABETS[name];
      assert.ok(alphabet !== undefined, name);
      const part = Array.from({ length: Number(length) }, () => alphabet[Math.floor(next() * alphabet.length)]).join(
        '',
      );
      parts.push(part);
      return part;
    });
  return { text, parts };
}

const seeds = Array.from({ length: SEEDS }, (_, at) => at + 1);
const rulesOf = (text: string, file: string): string[] => findInText(text, file).map(({ rule }) => rule);

function isRight({ rule, file, template }: Line, seed: number): boolean {
  const found = rulesOf(expand(template, seed).text, file);
  return rule === null ? found.length === 0 : found.length === 1 && found[0] === rule;
}

test('every line of the corpus has exactly its expected finding with every seed', () => {
  const wrong = LINES.filter(({ isKnownWrong }) => !isKnownWrong).flatMap((line) => {
    const failing = seeds.filter((seed) => !isRight(line, seed));
    if (failing.length === 0) return [];
    const { text } = expand(line.template, failing[0] ?? 0);
    return [
      `${line.rule ?? '-'} | ${line.file} | ${line.template}: ${failing.length} seeds, ${rulesOf(text, line.file)}: ${text}`,
    ];
  });
  assert.deepEqual(wrong, []);
});

test('a line that is marked as a known error is one', () => {
  const right = LINES.filter((line) => line.isKnownWrong && seeds.every((seed) => isRight(line, seed)));
  assert.deepEqual(right, []);
});

test('a finding has its line number and shows at most four characters of the secret', () => {
  for (const { rule, file, template, isKnownWrong } of LINES) {
    if (rule === null || isKnownWrong || rule === 'host-with-password') continue; // the text is the whole file
    const { text, parts } = expand(template, 1);
    const found = findInText(`one\n${text}\nthree`, file);
    assert.equal((found[0]?.line ?? 0) >= 2, true, template);
    assert.match(found[0]?.hint ?? '', /^.{0,4}…$/);
    for (const part of parts.filter(({ length }) => length > 4)) {
      assert.equal(JSON.stringify(found).includes(part), false, template);
    }
  }
});

test('every pattern has a line in the corpus and a unique name', () => {
  const names = SECRET_PATTERNS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
  const covered = new Set(LINES.map(({ rule }) => rule));
  assert.deepEqual(
    names.filter((name) => !covered.has(name)),
    [],
  );
});

test('recall and precision over the corpus include known misses and false alarms', (t) => {
  let [expected, hits, alarms] = [0, 0, 0];
  for (const { rule, file, template } of LINES) {
    for (const seed of seeds) {
      const found = rulesOf(expand(template, seed).text, file).length > 0;
      if (rule !== null) expected++;
      if (rule !== null && found) hits++;
      if (rule === null && found) alarms++;
    }
  }
  const [recall, precision] = [hits / expected, hits / (hits + alarms)];
  t.diagnostic(`recall ${recall.toFixed(3)}, precision ${precision.toFixed(3)}, ${LINES.length} lines, ${SEEDS} seeds`);
  assert.equal(recall >= 0.95 && precision >= 0.98, true, `${recall} ${precision}`);
});
