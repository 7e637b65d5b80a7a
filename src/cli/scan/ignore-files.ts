/**
 * Finds the .gitignore files that apply to a directory, and bounds their cost. They are untrusted: one that exceeds a
 * bound is not followed and is reported, so that more is scanned, not less.
 */
import { join } from 'node:path';
import { readRegularFile } from '../input.ts';
import { isIgnored, type MatchBudget, type Patterns, parsePatterns } from './ignore.ts';

const MAX_BYTES = 256 * 1024;
/** For all files together; some seconds of work. Matching 100,000 names against 100 ordinary patterns takes a third. */
const MAX_STEPS = 400_000_000;

/** The patterns of the files that apply to a directory, outermost first; `depth`: the path segments above a file. */
export type ActiveIgnores = readonly { readonly depth: number; readonly patterns: Patterns }[];

export class IgnoreFiles {
  readonly #notFollowed: string[];
  readonly #steps: MatchBudget = { left: MAX_STEPS };

  /** Files that are not followed are appended with the reason: `app/.gitignore (larger than 256 KiB)`. */
  constructor(notFollowed: string[]) {
    this.#notFollowed = notFollowed;
  }

  /** The files that apply to the directory: those of its ancestors and its own. */
  async enter(above: ActiveIgnores, root: string, path: readonly string[]): Promise<ActiveIgnores> {
    const name = [...path, '.gitignore'].join('/');
    // As git does for a link. An unreadable file is reported when it is scanned.
    const content = await readRegularFile(join(root, name), MAX_BYTES).catch(() => 'other' as const);
    if (content === 'large') this.#notFollowed.push(`${name} (larger than ${MAX_BYTES / 1024} KiB)`);
    if (typeof content === 'string') return above;
    return [...above, { depth: path.length, patterns: parsePatterns(content.toString('utf8')) }];
  }

  /** The deepest file with a matching pattern decides. */
  ignores(active: ActiveIgnores, path: readonly string[], isDirectory: boolean): boolean {
    for (const { depth, patterns } of active.toReversed()) {
      if (this.#steps.left < 0) return false;
      const ignored = isIgnored(patterns, path.slice(depth), isDirectory, this.#steps);
      if (ignored !== null) return ignored;
      if (this.#steps.left < 0) this.#notFollowed.push('any further .gitignore file (their patterns take too long)');
    }
    return false;
  }
}
