// A map that knows what came first.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Fifo } from '../../src/core/fifo.ts';
import { runs } from '../kit/property.ts';

test('it does what a list does that is looked through, whatever is put, deleted and let go', () => {
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
      const fifo = new Fifo<number, string>();
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
          assert.equal(fifo.shift(), model.shift()?.[1]);
        } else {
          fifo.clear();
          model = [];
        }
        assert.equal(fifo.size, model.length);
        for (const [other, theirs] of model) assert.equal(fifo.get(other), theirs);
      }
      assert.deepEqual(
        Array.from({ length: model.length + 1 }, () => fifo.shift()),
        [...model.map(([, value]) => value), undefined],
      );
    }),
    runs(150),
  );
});

test('letting the oldest go costs the same, however many went before', () => {
  const measure = (size: number): number => {
    const fifo = new Fifo<string, number>();
    for (let key = 0; key < size; key++) fifo.put(`key ${key}`, key);
    const startedAt = performance.now();
    for (let key = size; key < size + 20_000; key++) {
      fifo.put(`key ${key}`, key);
      fifo.shift();
    }
    return performance.now() - startedAt;
  };
  measure(1000);
  const [small, large] = [measure(1000), measure(30_000)];
  assert.equal(large < 15 * small + 20, true, `${small} ms with 1,000, ${large} ms with 30,000`);
});
