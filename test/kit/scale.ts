/** How often a test repeats what it does: a few times in `npm test`, the full number in `npm run test:all`, ten times that with SLOW. */
const { LEASEHOLD_TEST_LONG, SLOW } = process.env;

/** `full` kills, races or rounds support the claim; `few` are a quick check of it. */
export function scaled(few: number, full: number): number {
  if (SLOW) return 10 * full;
  return LEASEHOLD_TEST_LONG ? full : few;
}
