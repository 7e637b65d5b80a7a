/** Limits the runs of property tests, so that a test run stays short. */
import fc from 'fast-check';
import { scaled } from './scale.ts';

/** Parameters of `fc.assert`: `few` runs, `full` in `npm run test:weekly`. */
export function runs(few: number, full = few): { numRuns: number } {
  return { numRuns: scaled(few, full) };
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
