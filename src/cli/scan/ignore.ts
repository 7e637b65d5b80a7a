/**
 * Finds the .gitignore files that apply to a directory, and bounds their cost. They are untrusted: one that exceeds a
 * bound is not followed and is reported, so that more is scanned, not less.
 *
 * Matches paths against their patterns: blank lines, comments, `!`, a trailing slash for directories, another
 * slash to anchor a pattern, `*`, `?`, `**` and sets such as `[a-z]`. Parsing takes linear time. Matching takes at most
 * the product of the lengths, and no more steps than its budget. WHY not a library: they compile patterns to regular
 * expressions, which backtrack without a bound.
 * SOURCE: git-scm.com/docs/gitignore
 */
import { join } from 'node:path';
import { readRegularFile } from '../input.ts';

const MAX_BYTES = 256 * 1024;
/** For all files together; some seconds of work. Matching 100,000 names against 100 ordinary patterns is a third. */
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

/** The parts of a segment, each a character, `*`, `?` or a set; or `**` for any number of segments. */
type Segment = readonly string[] | '**';

interface Pattern {
  readonly segments: readonly Segment[];
  readonly isNegated: boolean;
  readonly isForDirectories: boolean;
}

/** The patterns of one file, in order. */
type Patterns = readonly Pattern[];

/** Remaining steps, each about one comparison of two characters. Results below 0 are invalid. */
export interface MatchBudget {
  left: number;
}

const WITH_SETS = /\\.|\[[!^]?\]?[^\]]*\]|[\s\S]/g;
const WITHOUT_SETS = /\\.|[\s\S]/g;

export function parsePatterns(text: string): Patterns {
  return text.split(/\r?\n/).flatMap((line) => {
    const pattern = line.replace(/(?<![\\ ]) +$/, '');
    if (pattern.startsWith('#')) return [];
    const isNegated = pattern.startsWith('!');
    const body = pattern.slice(isNegated ? 1 : 0);
    const isForDirectories = body.endsWith('/');
    let end = body.length;
    while (body[end - 1] === '/') end -= 1;
    const path = body.slice(0, end);
    const segments = path
      .split('/')
      .filter((segment) => segment !== '')
      .map((segment): Segment => (segment === '**' ? segment : toParts(segment)));
    if (segments.length === 0) return [];
    // A pattern without a slash before its end matches at any depth.
    return [{ segments: path.includes('/') ? segments : ['**' as const, ...segments], isNegated, isForDirectories }];
  });
}

/** A [ without a later ] is literal. WHY split first: searching a ] from each [ would take quadratic time. */
function toParts(segment: string): readonly string[] {
  const end = segment.lastIndexOf(']') + 1;
  return [...(segment.slice(0, end).match(WITH_SETS) ?? []), ...(segment.slice(end).match(WITHOUT_SETS) ?? [])];
}

/**
 * Whether the last matching pattern ignores the path; null when none matches. `path` is relative to the directory of
 * the patterns.
 */
export function isIgnored(
  patterns: Patterns,
  path: readonly string[],
  isDirectory: boolean,
  steps: MatchBudget,
): boolean | null {
  const last = patterns.findLast(({ segments, isForDirectories }) => {
    steps.left -= 1;
    return steps.left >= 0 && (isDirectory || !isForDirectories) && matchPath(segments, path, steps);
  });
  return last === undefined || steps.left < 0 ? null : !last.isNegated;
}

/** `**` matches any number of segments. */
function matchPath(pattern: readonly Segment[], path: readonly string[], steps: MatchBudget): boolean {
  const isStar = (at: number): boolean => pattern[at] === '**';
  const isMatch = (at: number, to: number): boolean => matchSegment(pattern[at] ?? [], path[to] ?? '', steps);
  // Most patterns match at any depth, so only the last name is compared.
  if (pattern.length === 2 && isStar(0) && !isStar(1)) return path.length > 0 && isMatch(1, path.length - 1);
  return matchRun(pattern.length, path.length, isStar, isMatch, steps);
}

function matchSegment(parts: Segment, name: string, steps: MatchBudget): boolean {
  const isStar = (at: number): boolean => parts[at] === '*';
  const isMatch = (at: number, to: number): boolean => {
    const part = parts[at] ?? '';
    // A set is compared as a whole.
    steps.left -= part.length;
    return matchCharacter(part, name[to] ?? '');
  };
  return matchRun(parts.length, name.length, isStar, isMatch, steps);
}

function matchCharacter(part: string, character: string): boolean {
  if (part === '?') return true;
  if (part.length > 1 && part.startsWith('\\')) return part.slice(1) === character;
  if (part.length < 3 || !part.startsWith('[')) return part === character;
  const isNegated = /^\[[!^]/.test(part);
  const set = part.slice(isNegated ? 2 : 1, -1);
  let isIn = false;
  for (let at = 0; at < set.length; at++) {
    const [from = '', to] = set[at + 1] === '-' && at + 2 < set.length ? [set[at], set[at + 2]] : [set[at], set[at]];
    if (from <= character && character <= (to ?? from)) isIn = true;
    if (from !== to) at += 2;
  }
  return isIn !== isNegated;
}

/** Matches a pattern with stars against a sequence. It backtracks to the last star only. */
function matchRun(
  patternLength: number,
  length: number,
  isStar: (at: number) => boolean,
  isMatch: (at: number, to: number) => boolean,
  steps: MatchBudget,
): boolean {
  let [at, to, star, resumeAt] = [0, 0, -1, 0];
  while (to < length) {
    steps.left -= 1;
    if (steps.left < 0) return false;
    if (at < patternLength && isStar(at)) [star, resumeAt, at] = [at, to, at + 1];
    else if (at < patternLength && isMatch(at, to)) [at, to] = [at + 1, to + 1];
    else if (star !== -1) [at, resumeAt, to] = [star + 1, resumeAt + 1, resumeAt + 1];
    else return false;
  }
  while (at < patternLength && isStar(at)) at += 1;
  return at === patternLength;
}
