/** The number of repetitions of a test: a few in `npm test`, all in `npm run test:all`, ten times as many with SLOW. */
const { LEASEHOLD_TEST_LONG, SLOW } = process.env;

/** `full` kills, races or rounds support the claim; `few` are a quick check of it. */
export function scaled(few: number, full: number): number {
  if (SLOW) return 10 * full;
  return LEASEHOLD_TEST_LONG ? full : few;
}
