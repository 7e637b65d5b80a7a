/**
 * What .gitignore files say, as far as they are read here: blank lines, comments, `!`, a slash at the end for folders, a slash elsewhere
 * for the place, `*`, `?`, `**` and sets as in `[a-z]`. Matching costs the product of the lengths at most, whatever the pattern, and no
 * more steps than it is given; reading patterns costs their length.
 * SOURCE: git-scm.com/docs/gitignore
 */

/** A segment as its parts: a character, a star, a set; or any number of segments. */
type Segment = readonly string[] | '**';

interface Pattern {
  readonly segments: readonly Segment[];
  readonly isNegated: boolean;
  readonly isForFolders: boolean;
}

/** The patterns of one file, in its order. */
export type Patterns = readonly Pattern[];

/** What matching may still cost, about a comparison of two characters each; below 0 nothing that was said counts. */
export interface MatchBudget {
  left: number;
}

const MOST_PATTERNS = 2000;
const LONGEST = 1024;
const SETS = /\\.|\[[!^]?\]?[^\]]*\]|[\s\S]/g;
const NO_SETS = /\\.|[\s\S]/g;

const isPattern = (line: string): boolean => line !== '' && !line.startsWith('#');

/** Null where these are patterns that can be followed. */
export function brokenPatternsRule(text: string): string | null {
  const lines = text.split(/\r?\n/).filter(isPattern);
  if (lines.length > MOST_PATTERNS) return `more than ${MOST_PATTERNS} patterns`;
  return lines.some(({ length }) => length > LONGEST) ? `a pattern of more than ${LONGEST} characters` : null;
}

export function parsePatterns(text: string): Patterns {
  return text.split(/\r?\n/).flatMap((line) => {
    const pattern = line.replace(/(?<![\\ ]) +$/, '');
    if (!isPattern(pattern)) return [];
    const isNegated = pattern.startsWith('!');
    const body = pattern.slice(isNegated ? 1 : 0);
    const isForFolders = body.endsWith('/');
    let end = body.length;
    while (body[end - 1] === '/') end -= 1;
    const place = body.slice(0, end);
    const segments = place
      .split('/')
      .filter((segment) => segment !== '')
      .map((segment): Segment => (segment === '**' ? segment : toParts(segment)));
    if (segments.length === 0) return [];
    // Without a slash before its end it is meant at any depth.
    return [{ segments: place.includes('/') ? segments : ['**' as const, ...segments], isNegated, isForFolders }];
  });
}

/** A [ with no ] behind it is itself. WHY apart: looking for it from each [ would cost the square of their number. */
function toParts(segment: string): readonly string[] {
  const end = segment.lastIndexOf(']') + 1;
  return [...(segment.slice(0, end).match(SETS) ?? []), ...(segment.slice(end).match(NO_SETS) ?? [])];
}

/** Whether the last pattern that matches says so; null where none does. `path` is from the folder of the patterns. */
export function isIgnored(
  patterns: Patterns,
  path: readonly string[],
  isFolder: boolean,
  steps: MatchBudget,
): boolean | null {
  const last = patterns.findLast(({ segments, isForFolders }) => {
    steps.left -= 1;
    return steps.left >= 0 && (isFolder || !isForFolders) && matchPath(segments, path, steps);
  });
  return last === undefined || steps.left < 0 ? null : !last.isNegated;
}

/** `**` takes any number of segments. */
function matchPath(pattern: readonly Segment[], path: readonly string[], steps: MatchBudget): boolean {
  const isStar = (at: number): boolean => pattern[at] === '**';
  const isMatch = (at: number, to: number): boolean => matchSegment(pattern[at] ?? [], path[to] ?? '', steps);
  // What is meant at any depth, as most patterns are, is held against the last name alone.
  if (pattern.length === 2 && isStar(0) && !isStar(1)) return path.length > 0 && isMatch(1, path.length - 1);
  return matchRun(pattern.length, path.length, isStar, isMatch, steps);
}

function matchSegment(parts: Segment, name: string, steps: MatchBudget): boolean {
  const isStar = (at: number): boolean => parts[at] === '*';
  const isMatch = (at: number, to: number): boolean => {
    const part = parts[at] ?? '';
    // A set is gone through as a whole.
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

/** A pattern with stars against a row of things. Only the last star is ever tried again. */
function matchRun(
  patterns: number,
  things: number,
  isStar: (at: number) => boolean,
  isMatch: (at: number, to: number) => boolean,
  steps: MatchBudget,
): boolean {
  let [at, to, star, resumeAt] = [0, 0, -1, 0];
  while (to < things) {
    steps.left -= 1;
    if (steps.left < 0) return false;
    if (at < patterns && isStar(at)) [star, resumeAt, at] = [at, to, at + 1];
    else if (at < patterns && isMatch(at, to)) [at, to] = [at + 1, to + 1];
    else if (star !== -1) [at, resumeAt, to] = [star + 1, resumeAt + 1, resumeAt + 1];
    else return false;
  }
  while (at < patterns && isStar(at)) at += 1;
  return at === patterns;
}
