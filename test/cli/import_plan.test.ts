// The plan of an import: what is stored where, what is left out, and that nothing is merged in silence.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../../src/cli/import/draft.ts';
import { makePlan, type PlanOptions } from '../../src/cli/import/plan.ts';
import { planRecords } from '../../src/cli/import/report.ts';
import { Secret } from '../../src/core/secret.ts';

const draft = (names: readonly string[], text: string, where = names.join('.')): Draft => ({
  names,
  value: new Secret(text),
  type: null,
  description: '',
  where,
});

function plan(drafts: readonly Draft[], options: Partial<PlanOptions> = {}) {
  return makePlan(
    { drafts, leftOut: [] },
    { prefix: [], existing: new Set(), seesAll: true, onlyNew: false, ...options },
  );
}

test('each draft says whether it would be new, a new version, or is there already', () => {
  const existing = new Set(['shop/a']);
  const drafts = [draft(['a'], '1'), draft(['b'], '2')];
  const states = (options: Partial<PlanOptions>) =>
    plan(drafts, { prefix: ['shop'], existing, ...options }).rows.map(({ path, state }) => `${path} ${state}`);
  assert.deepEqual(states({}), ['shop/a new version', 'shop/b new']);
  assert.deepEqual(states({ onlyNew: true }), ['shop/a there', 'shop/b new']);
  assert.deepEqual(states({ seesAll: false }), ['shop/a new version', 'shop/b new?']);
});

test('two values for one path are both left out, each naming the other', () => {
  const { rows, leftOut } = plan([draft(['a b'], '1', 'x:1'), draft(['a-b'], '2', 'x:9'), draft(['c'], '3')]);
  assert.deepEqual(
    rows.map(({ path }) => path),
    ['c'],
  );
  assert.deepEqual(
    leftOut.map(({ where, kind }) => [where, kind]),
    [
      ['x:1', 'refused'],
      ['x:9', 'refused'],
    ],
  );
  assert.match(leftOut[0]?.reason ?? '', /^it becomes a-b, and so does another value \(x:9\); rename/);
  assert.match(leftOut[1]?.reason ?? '', /\(x:1\)/);
});

test('the same value twice is one credential, and both places are told', () => {
  const { rows, leftOut } = plan([draft(['a'], '1', 'x:1'), draft(['a'], '1', 'x:9')]);
  assert.deepEqual(
    rows.map(({ path, from }) => [path, from]),
    [['a', 'x:1, x:9']],
  );
  assert.deepEqual(leftOut, []);
});

test('a value that the vault would refuse is left out before any call', () => {
  const { rows, leftOut } = plan([
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
    leftOut.map(({ where, kind }) => [where, kind]),
    [
      ['empty', 'empty'],
      ['large', 'refused'],
      ['half', 'refused'],
      ['..', 'refused'],
    ],
  );
  assert.match(leftOut[1]?.reason ?? '', /^its value must be 1 to 262144 bytes/);
});

test('no record of a plan holds a value', () => {
  const made = plan([
    draft(['a'], 'hunter2'),
    draft(['b'], 'hunter2\ud800'),
    draft(['c d'], 'hunter2'),
    draft(['c-d'], 'hunter3'),
  ]);
  assert.doesNotMatch(JSON.stringify([planRecords(made), made]), /hunter/);
});
