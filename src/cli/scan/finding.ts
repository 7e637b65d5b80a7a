/** What was found, without the value: where, by which rule, and a hint of four characters at most. */
import type { Secret } from '../../core/secret.ts';

export interface Finding {
  /** From the folder that is scanned, with forward slashes. May hold anything: to be shown escaped. */
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly rule: string;
  /** The name that it is assigned to; null where it is told by its form alone. */
  readonly name: string | null;
  /** Its well-known beginning, as in `ghp_…`; `…` where it has none. */
  readonly hint: string;
}

/** One that stands in an env file by itself, so that a reference can take its place. */
export interface MovableFinding extends Finding {
  readonly name: string;
  readonly value: Secret;
}

export function isMovable(finding: Finding): finding is MovableFinding {
  return 'value' in finding;
}

/** A line that says so is passed over. */
export const ALLOW_COMMENT = 'leasehold:allow';
