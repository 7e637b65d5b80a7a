/** Limits the runs of property tests, so that a test run stays short; `SLOW=1` runs them much more often. */
import fc from 'fast-check';

const FACTOR = process.env['SLOW'] ? 40 : 1;

/** Parameters of `fc.assert`: `count` runs, forty times as many with `SLOW=1`. */
export function runs(count: number): { numRuns: number } {
  return { numRuns: count * FACTOR };
}

/** Any string, including unpaired surrogates. WHY not fast-check's arbitrary: building it takes a second. */
export function anyText(maxLength = 10): fc.Arbitrary<string> {
  const unit = fc.oneof(fc.nat(0x7f), fc.integer({ min: 0xd7f0, max: 0xe00f }), fc.nat(0xffff));
  return fc.array(unit, { maxLength }).map((units) => String.fromCharCode(...units));
}
