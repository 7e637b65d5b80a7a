// Durations by minute: quantiles within a tenth, and only the last hour.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MINUTES, MinuteRing } from '../../src/core/minute-latency.ts';
import { runs } from '../kit/property.ts';

const MINUTE_MS = 60_000;
const BEGIN = 29_000_000 * MINUTE_MS;

test('quantiles are within a tenth of the exact ones', () => {
  const duration = fc.double({ min: 0.07, max: 60_000, noNaN: true });
  fc.assert(
    fc.property(fc.array(duration, { minLength: 1, maxLength: 200 }), (durations) => {
      const ring = new MinuteRing();
      for (const each of durations) ring.observe(each, BEGIN + 1);
      const sorted = durations.toSorted((a, b) => a - b);
      const exact = (share: number): number => sorted[Math.ceil(sorted.length * share) - 1] ?? 0;
      const [minute, ...more] = ring.read(BEGIN + 2);
      assert.deepEqual([minute?.at, minute?.count, more], [BEGIN, durations.length, []]);
      for (const [shown = 0, share] of [
        [minute?.p50Ms, 0.5],
        [minute?.p99Ms, 0.99],
      ] as const) {
        assert.ok(Math.abs(shown / exact(share) - 1) < 0.1, `${shown} for ${exact(share)}`);
      }
    }),
    runs(200),
  );
});

test('extreme durations count, in the first and the last bucket', () => {
  const ring = new MinuteRing();
  for (const each of [0, 0.01, 1e9, Number.POSITIVE_INFINITY]) ring.observe(each, BEGIN);
  const [minute] = ring.read(BEGIN);
  assert.equal(minute?.count, 4);
  assert.ok((minute?.p50Ms ?? 0) < 0.07 && (minute?.p99Ms ?? 0) > 50_000);
});

test('the minutes of the last hour are shown, oldest first, and older ones are dropped', () => {
  const ring = new MinuteRing();
  for (let minute = 0; minute < 2 * MINUTES; minute += 2) ring.observe(1, BEGIN + minute * MINUTE_MS);
  const now = BEGIN + 2 * MINUTES * MINUTE_MS - 1;
  const shown = ring.read(now).map(({ at }) => (at - BEGIN) / MINUTE_MS);
  assert.deepEqual(
    shown,
    Array.from({ length: MINUTES / 2 }, (_, index) => MINUTES + 2 * index),
  );
  assert.deepEqual(ring.read(now + MINUTES * MINUTE_MS), []);
  // A clock that was set back shows nothing of the future.
  assert.deepEqual(ring.read(BEGIN - 1), []);
});
