// The plan of an import: what is stored where, what is left out, and that nothing is merged in silence.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Draft } from '../../src/cli/import/item.ts';
import { makePlan, type PlanOptions } from '../../src/cli/import/plan.ts';
import { planRecords } from '../../src/cli/import/report.ts';
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

test('of many places that get one path the first are named and the rest counted', () => {
  const places = Array.from({ length: 12 }, (_, at) => `x:${at}`);
  const clash = plan(places.map((place) => draft(['a'], place, place))).leftOut.map(({ reason }) => reason);
  assert.match(clash[0] ?? '', /\(x:1, x:2, x:3, x:4, x:5, x:6, x:7, x:8 and 3 more\)/);
  assert.match(clash[5] ?? '', /\(x:0, x:1, x:2, x:3, x:4, x:6, x:7, x:8 and 3 more\)/);
  assert.match(clash[11] ?? '', /\(x:0, x:1, x:2, x:3, x:4, x:5, x:6, x:7 and 3 more\)/);
  const [same] = plan(places.map((place) => draft(['a'], 'same', place))).rows;
  assert.equal(same?.from, 'x:0, x:1, x:2, x:3, x:4, x:5, x:6, x:7 and 4 more');
});

test('ten times as many names that get one path take about ten times as long, and the report of them too', () => {
  const made = (count: number) => Array.from({ length: count }, (_, at) => draft(['a'], String(at), `x:${at}`));
  assertGrowth((count) => planRecords(plan(made(count))), { small: 2000, times: 10, limit: 40 });
});

test('what was left out while reading stays left out, however much it is', () => {
  const leftOut = Array.from({ length: 300_000 }, (_, at) => ({
    where: `x:${at}`,
    reason: 'r',
    kind: 'empty' as const,
  }));
  const options = { prefix: [], existing: new Set<string>(), seesAll: true, onlyNew: false };
  assert.equal(makePlan({ drafts: [], leftOut }, options).leftOut.length, leftOut.length);
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
