/**
 * Which .gitignore files hold in a folder, and what they may cost. Whoever writes one may mean harm: one that breaks its bounds, or
 * takes too long, is not followed at all, so that more is looked at and not less, and that is told.
 */
import { join } from 'node:path';
import { readRegularFile } from '../given-file.ts';
import { brokenPatternsRule, isIgnored, type MatchBudget, type Patterns, parsePatterns } from './ignore.ts';

const MOST_BYTES = 256 * 1024;
/** Of one file, some seconds; a hundred thousand names against a hundred usual patterns take a third of it. */
const MOST_STEPS_OF_ONE = 400_000_000;
/** Of all files together. */
const MOST_STEPS = 1_000_000_000;

interface IgnoreFile {
  /** From the folder that is scanned. */
  readonly name: string;
  /** How many segments of a path lie above it. */
  readonly depth: number;
  readonly patterns: Patterns;
  readonly steps: MatchBudget;
}

/** Those that hold in a folder, the outermost first. */
export type ActiveIgnores = readonly IgnoreFile[];

export class IgnoreFiles {
  readonly #notFollowed: string[];
  #stepsLeft = MOST_STEPS;

  /** What is not followed is added there, with the reason: `app/.gitignore (larger than 256 KiB)`. */
  constructor(notFollowed: string[]) {
    this.#notFollowed = notFollowed;
  }

  /** Those that hold in the folder, which are those above it and its own. */
  async enter(above: ActiveIgnores, root: string, path: readonly string[]): Promise<ActiveIgnores> {
    const name = [...path, '.gitignore'].join('/');
    // As git does, where it is a link; one that can't be read is told as every other such file.
    const read = await readRegularFile(join(root, name), MOST_BYTES).catch(() => 'other' as const);
    if (read === 'other') return above;
    const text = read === 'large' ? '' : read.toString('utf8');
    const rule = read === 'large' ? `larger than ${MOST_BYTES / 1024} KiB` : brokenPatternsRule(text);
    if (rule !== null) this.#notFollowed.push(`${name} (${rule})`);
    const patterns = rule === null ? parsePatterns(text) : [];
    if (patterns.length === 0) return above;
    return [...above, { name, depth: path.length, patterns, steps: { left: MOST_STEPS_OF_ONE } }];
  }

  /** The deepest file that says something has the word. */
  ignores(holding: ActiveIgnores, path: readonly string[], isFolder: boolean): boolean {
    for (const { name, depth, patterns, steps } of holding.toReversed()) {
      if (steps.left < 0 || this.#stepsLeft < 0) continue;
      const before = steps.left;
      const said = isIgnored(patterns, path.slice(depth), isFolder, steps);
      this.#stepsLeft -= before - steps.left;
      if (steps.left < 0) this.#notFollowed.push(`${name} (its patterns take too long)`);
      else if (this.#stepsLeft < 0) this.#notFollowed.push('any further .gitignore (all together take too long)');
      else if (said !== null) return said;
    }
    return false;
  }
}
