/** Problems in files of the user, reported together with their locations. */

import { UsageError } from '../../platform/errors.ts';
import { toCell } from '../output/cells.ts';

export interface Problem {
  /** A file, or a file and its line. */
  readonly where: string;
  /** The field and the rule, never the value of the field. */
  readonly what: string;
}

const MAX_SHOWN = 50;

/** One error for all problems; `then` says what was not done because of them. */
export function problemsError(problems: readonly Problem[], then: string): UsageError {
  const lines = problems.slice(0, MAX_SHOWN).map(({ where, what }) => `${toCell(where)}: ${what}`);
  if (problems.length > MAX_SHOWN) lines.push(`and ${problems.length - MAX_SHOWN} more`);
  const head = problems.length === 1 ? '' : `${problems.length} problems\n`;
  return new UsageError(`${head}${lines.join('\n')}`, then);
}
