/** Limits the runs of property tests, so that a test run stays short; `SLOW=1` runs them much more often. */
import fc from 'fast-check';

const { LEASEHOLD_TEST_LONG, SLOW } = process.env;

/** Parameters of `fc.assert`: `few` runs, `full` in `npm run test:all`, forty times as many with `SLOW=1`. */
export function runs(few: number, full = few): { numRuns: number } {
  if (SLOW) return { numRuns: 40 * full };
  return { numRuns: LEASEHOLD_TEST_LONG ? full : few };
}

/** Any string without unpaired surrogates. WHY not fast-check's arbitrary: building it takes a second. */
export function wellFormedText(maxLength = 10): fc.Arbitrary<string> {
  const astral = fc.integer({ min: 0xe000, max: 0x10ffff });
  const codePoint = fc.oneof(fc.nat(0x7f), fc.nat(0xd7ff), fc.integer({ min: 0xd7f0, max: 0xd7ff }), astral);
  return fc.array(codePoint, { maxLength }).map((codePoints) => String.fromCodePoint(...codePoints));
}

/** Any string, including unpaired surrogates. WHY not fast-check's arbitrary: building it takes a second. */
export function anyText(maxLength = 10): fc.Arbitrary<string> {
  const unit = fc.oneof(fc.nat(0x7f), fc.integer({ min: 0xd7f0, max: 0xe00f }), fc.nat(0xffff));
  return fc.array(unit, { maxLength }).map((units) => String.fromCharCode(...units));
}
