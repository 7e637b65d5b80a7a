// The plain counters behind the metrics.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Counter, Histogram, LabelledCounter, LastHour } from '../../src/core/measures.ts';
import { runs } from '../kit/property.ts';

test('a distribution counts how many values are at most each bound', () => {
  const value = fc.double({ min: 0, max: 20, noNaN: true });
  fc.assert(
    fc.property(fc.array(value), (values) => {
      const bounds = [0.5, 1, 5, 10];
      const distribution = new Histogram(bounds);
      for (const each of values) distribution.observe(each);
      assert.deepEqual(
        distribution.cumulative(),
        bounds.map((bound) => values.filter((each) => each <= bound).length),
      );
      assert.equal(distribution.count, values.length);
      assert.equal(
        distribution.sum,
        values.reduce((sum, each) => sum + each, 0),
      );
    }),
    runs(100),
  );
});

test('tallies count per label, and known labels begin with 0', () => {
  const tally = new Counter(['a', 'b']);
  tally.add('b');
  tally.add('b', 2);
  assert.deepEqual(tally.entries(), [
    ['a', 0],
    ['b', 3],
  ]);
  const pairs = new LabelledCounter();
  pairs.add('x', 'y');
  pairs.add('x', 'y');
  pairs.add('y', 'x');
  assert.deepEqual(pairs.entries(), [
    ['x', 'y', 2],
    ['y', 'x', 1],
  ]);
  assert.equal(pairs.get('x', 'x'), 0);
});

test('the last hour has 60 minutes, and none of an earlier hour', () => {
  const [begin, minute] = [Date.parse('2026-01-01T00:00:00Z'), 60_000];
  const hour = new LastHour();
  hour.add('uses', begin + 7);
  hour.add('uses', begin + minute - 1);
  hour.add('denials', begin + 59 * minute);
  const read = (now: number) => hour.read(now).filter(({ uses, denials }) => uses + denials > 0);
  const oldest = { at: begin, retrievals: 0, uses: 2, denials: 0 };
  const newest = { at: begin + 59 * minute, retrievals: 0, uses: 0, denials: 1 };
  assert.deepEqual(read(begin + 60 * minute - 1), [oldest, newest]);
  assert.deepEqual(read(begin + 60 * minute), [newest]);
  hour.add('retrievals', begin + 60 * minute);
  assert.deepEqual(hour.read(begin + 60 * minute).at(-1), {
    ...oldest,
    at: begin + 60 * minute,
    retrievals: 1,
    uses: 0,
  });
  assert.equal(hour.read(begin + 500 * minute).length, 60);
  assert.deepEqual(read(begin + 500 * minute), []);
});
