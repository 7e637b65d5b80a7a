// Tests the plan of an import: what is stored, what is skipped, and that different values are never merged.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../../src/cli/import/item.ts';
import { makePlan, type PlanOptions } from '../../src/cli/import/plan.ts';
import { toRecords } from '../../src/cli/import/report.ts';
import { Secret } from '../../src/core/secret.ts';
import { assertGrowth } from '../kit/growth.ts';

const draft = (names: readonly string[], text: string, where = names.join('.')): Draft => ({
  names,
  value: new Secret(text),
  type: null,
  description: '',
  where,
});

function plan(drafts: readonly Draft[], options: Partial<PlanOptions> = {}) {
  return makePlan(
    { drafts, skipped: [] },
    { prefix: [], existing: new Set(), seesAll: true, onlyNew: false, ...options },
  );
}

test('each row is new, a new version, or exists', () => {
  const existing = new Set(['shop/a']);
  const drafts = [draft(['a'], '1'), draft(['b'], '2')];
  const states = (options: Partial<PlanOptions>) =>
    plan(drafts, { prefix: ['shop'], existing, ...options }).rows.map(({ path, state }) => `${path} ${state}`);
  assert.deepEqual(states({}), ['shop/a new version', 'shop/b new']);
  assert.deepEqual(states({ onlyNew: true }), ['shop/a exists', 'shop/b new']);
  assert.deepEqual(states({ seesAll: false }), ['shop/a new version', 'shop/b new?']);
});

test('two values for one path are both skipped, and each names another', () => {
  const { rows, skipped } = plan([draft(['a b'], '1', 'x:1'), draft(['a-b'], '2', 'x:9'), draft(['c'], '3')]);
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['c'],
  );
  assert.deepEqual(
    skipped.map(({ where, kind }) => [where, kind]),
    [
      ['x:1', 'rejected'],
      ['x:9', 'rejected'],
    ],
  );
  assert.match(skipped[0]?.reason ?? '', /^its path a-b is also the path of another value \(x:9\); rename/);
  assert.match(skipped[1]?.reason ?? '', /\(x:1\)/);
});

test('the same value twice is one credential with the first location', () => {
  const { rows, skipped } = plan([draft(['a'], '1', 'x:1'), draft(['a'], '1', 'x:9')]);
  assert.deepEqual(
    rows.map(({ path, from }) => [path, from]),
    [['a', 'x:1 and 1 more']],
  );
  assert.deepEqual(skipped, []);
});

test('planning and reporting values with one path take time linear in their number', () => {
  const made = (count: number) => Array.from({ length: count }, (_, at) => draft(['a'], String(at), `x:${at}`));
  assertGrowth((count) => toRecords(plan(made(count)), 'plan'), { small: 2000, times: 10, limit: 40 });
});

test('skipped values of the source stay skipped, however many they are', () => {
  const skipped = Array.from({ length: 300_000 }, (_, at) => ({
    where: `x:${at}`,
    reason: 'r',
    kind: 'empty' as const,
  }));
  const options = { prefix: [], existing: new Set<string>(), seesAll: true, onlyNew: false };
  assert.equal(makePlan({ drafts: [], skipped }, options).skipped.length, skipped.length);
});

test('a value that the vault would reject is skipped before any request', () => {
  const { rows, skipped } = plan([
    draft(['empty'], ''),
    draft(['large'], 'é'.repeat(131_073)),
    draft(['largest'], 'é'.repeat(131_072)),
    draft(['half'], 'a\ud800'),
    draft(['..'], 'x'),
  ]);
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['largest'],
  );
  assert.deepEqual(
    skipped.map(({ where, kind }) => [where, kind]),
    [
      ['empty', 'empty'],
      ['large', 'rejected'],
      ['half', 'rejected'],
      ['..', 'rejected'],
    ],
  );
  assert.match(skipped[1]?.reason ?? '', /^its value must be 1 to 262144 bytes/);
});

test('no record of a plan contains a value', () => {
  const made = plan([
    draft(['a'], 'hunter2'),
    draft(['b'], 'hunter2\ud800'),
    draft(['c d'], 'hunter2'),
    draft(['c-d'], 'hunter3'),
  ]);
  assert.doesNotMatch(JSON.stringify([toRecords(made, 'plan'), made]), /hunter/);
});
