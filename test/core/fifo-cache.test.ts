// A map that evicts its oldest entry.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FifoCache } from '../../src/core/fifo-cache.ts';
import { runs } from '../kit/property.ts';

test('it behaves like a list for any sequence of puts, deletions and evictions', () => {
  const step = fc.oneof(
    fc.tuple(fc.constant('put' as const), fc.nat(20)),
    fc.tuple(fc.constant('delete' as const), fc.nat(20)),
    fc.tuple(fc.constant('shift' as const), fc.constant(0)),
    fc.tuple(fc.constant('clear' as const), fc.constant(0)),
  );
  const steps = fc.array(
    fc.oneof(
      { arbitrary: step, weight: 1 },
      { arbitrary: fc.tuple(fc.constant('put' as const), fc.nat(20)), weight: 2 },
    ),
    {
      maxLength: 300,
    },
  );
  fc.assert(
    fc.property(steps, (all) => {
      const fifo = new FifoCache<number, string>();
      let model: [number, string][] = [];
      for (const [index, [what, key]] of all.entries()) {
        const value = `${key} of ${index}`;
        const [, known] = model.find(([other]) => other === key) ?? [];
        if (what === 'put') {
          fifo.put(key, value);
          model = [...model.filter(([other]) => other !== key), [key, value]];
        } else if (what === 'delete') {
          assert.equal(fifo.delete(key), known);
          model = model.filter(([other]) => other !== key);
        } else if (what === 'shift') {
          assert.equal(fifo.evictOldest(), model.shift()?.[1]);
        } else {
          fifo.clear();
          model = [];
        }
        assert.equal(fifo.size, model.length);
        for (const [other, theirs] of model) assert.equal(fifo.get(other), theirs);
      }
      assert.deepEqual(
        Array.from({ length: model.length + 1 }, () => fifo.evictOldest()),
        [...model.map(([, value]) => value), undefined],
      );
    }),
    runs(150),
  );
});

type Queue = Pick<FifoCache<string, number>, 'put' | 'evictOldest'>;

/** The alternative that `FifoCache` avoids: it skips the holes of all entries evicted before. */
function newFirstKeyQueue(): Queue {
  const entries = new Map<string, number>();
  return {
    put: (key, value) => void entries.set(key, value),
    evictOldest() {
      const key = entries.keys().next().value ?? '';
      const value = entries.get(key);
      entries.delete(key);
      return value;
    },
  };
}

/** Milliseconds to evict the older half of `count` entries. */
function letHalfGo(queue: Queue, size: number): number {
  for (let key = 0; key < size; key++) queue.put(`key ${key}`, key);
  const startedAt = performance.now();
  for (let key = 0; key < size / 2; key++) queue.evictOldest();
  return performance.now() - startedAt;
}

test('evicting the oldest entry stays fast after many evictions; by a Map’s first key it takes ten times as long', () => {
  const size = 40_000;
  // WHY the minimum: other work of the machine can only lengthen a run.
  const own = Math.min(...[1, 2, 3].map(() => letHalfGo(new FifoCache(), size)));
  const byFirstKey = letHalfGo(newFirstKeyQueue(), size);
  assert.equal(10 * own < byFirstKey, true, `${own} ms, by a Map’s first key ${byFirstKey} ms`);
});
