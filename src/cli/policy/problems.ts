/** What is wrong with files that people wrote: all of it at once, each with its place, so that one look mends them. */

import { ApiError } from '../../core/errors.ts';
import { UsageError } from '../../platform/errors.ts';
import { toCell } from '../output/cells.ts';

export interface Problem {
  /** A file, or a file and its line. */
  readonly where: string;
  /** The field and the rule, never what was given for the field. */
  readonly what: string;
}

const MOST_SHOWN = 50;

/** @throws UsageError where there is any problem; `then` says what was not done because of it. */
export function throwIfProblems(problems: readonly Problem[], then: string): void {
  if (problems.length === 0) return;
  const lines = problems.slice(0, MOST_SHOWN).map(({ where, what }) => `${toCell(where)}: ${what}`);
  if (problems.length > MOST_SHOWN) lines.push(`and ${problems.length - MOST_SHOWN} more`);
  const head = problems.length === 1 ? '' : `${problems.length} mistakes\n`;
  throw new UsageError(`${head}${lines.join('\n')}`, then);
}

/** What a grammar of core says of it, or null where it has nothing to say. */
export function ruleBroken(parse: () => unknown): string | null {
  try {
    parse();
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}
