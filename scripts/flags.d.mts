/** Types of flags.mjs, for src/cli. */
export const OLDEST_NODE: string;
export const HARDENING: readonly string[];
export const TUNING: readonly string[];
export function isNewEnough(): boolean;
