/** The number of repetitions of a test: a few, or all in `npm run test:weekly`. */
const { LEASEHOLD_TEST_ALL_ROUNDS } = process.env;

/** `full` kills, races or rounds support the claim; `few` are a quick check of it. */
export function scaled(few: number, full: number): number {
  return LEASEHOLD_TEST_ALL_ROUNDS ? full : few;
}
