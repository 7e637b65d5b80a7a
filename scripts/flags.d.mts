/** Types of flags.mjs, for src/cli. */
export const OLDEST_NODE: string;
export const HARDENING: readonly string[];
export const TUNING: readonly string[];
/** Program and words for `spawn`. */
export function withoutCoreDumps(program: string, words: readonly string[]): [string, string[]];
export function isNewEnough(): boolean;
