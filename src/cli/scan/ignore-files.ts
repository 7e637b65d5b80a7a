/**
 * Finds the .gitignore files that apply to a directory, and bounds their cost. They are untrusted: a file that exceeds
 * a bound is not followed and is reported, so that more is scanned, not less.
 */
import { join } from 'node:path';
import { readRegularFile } from '../input.ts';
import { brokenPatternsRule, isIgnored, type MatchBudget, type Patterns, parsePatterns } from './ignore.ts';

const MAX_BYTES = 256 * 1024;
/** Some seconds of work; matching 100,000 names against 100 ordinary patterns takes a third of it. */
const MAX_STEPS_PER_FILE = 400_000_000;
/** For all files together. */
const MAX_STEPS = 1_000_000_000;

interface IgnoreFile {
  /** Relative to the scanned directory. */
  readonly name: string;
  /** The number of path segments above it. */
  readonly depth: number;
  readonly patterns: Patterns;
  readonly steps: MatchBudget;
}

/** The files that apply to a directory, outermost first. */
export type ActiveIgnores = readonly IgnoreFile[];

export class IgnoreFiles {
  readonly #notFollowed: string[];
  #stepsLeft = MAX_STEPS;

  /** Files that are not followed are appended with the reason: `app/.gitignore (larger than 256 KiB)`. */
  constructor(notFollowed: string[]) {
    this.#notFollowed = notFollowed;
  }

  /** The files that apply to the directory: those of its ancestors and its own. */
  async enter(above: ActiveIgnores, root: string, path: readonly string[]): Promise<ActiveIgnores> {
    const name = [...path, '.gitignore'].join('/');
    // As git does for a link. An unreadable file is reported when it is scanned.
    const content = await readRegularFile(join(root, name), MAX_BYTES).catch(() => 'other' as const);
    if (content === 'other') return above;
    const text = content === 'large' ? '' : content.toString('utf8');
    const rule = content === 'large' ? `larger than ${MAX_BYTES / 1024} KiB` : brokenPatternsRule(text);
    if (rule !== null) this.#notFollowed.push(`${name} (${rule})`);
    const patterns = rule === null ? parsePatterns(text) : [];
    if (patterns.length === 0) return above;
    return [...above, { name, depth: path.length, patterns, steps: { left: MAX_STEPS_PER_FILE } }];
  }

  /** The deepest file with a matching pattern decides. */
  ignores(active: ActiveIgnores, path: readonly string[], isDirectory: boolean): boolean {
    for (const { name, depth, patterns, steps } of active.toReversed()) {
      if (steps.left < 0 || this.#stepsLeft < 0) continue;
      const before = steps.left;
      const ignored = isIgnored(patterns, path.slice(depth), isDirectory, steps);
      this.#stepsLeft -= before - steps.left;
      if (steps.left < 0) this.#notFollowed.push(`${name} (its patterns take too long)`);
      else if (this.#stepsLeft < 0) this.#notFollowed.push('any further .gitignore file (together they take too long)');
      else if (ignored !== null) return ignored;
    }
    return false;
  }
}
