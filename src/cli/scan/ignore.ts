/**
 * What .gitignore files say, as far as they are read here: blank lines, comments, `!`, a slash at the end for folders, a slash elsewhere
 * for the place, `*`, `?`, `**` and sets as in `[a-z]`. Matching costs the product of the lengths at most, whatever the pattern.
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

const MOST_PATTERNS = 2000;
const LONGEST = 256;
const PARTS = /\\.|\[[!^]?\]?[^\]]*\]|[\s\S]/g;

export function parsePatterns(text: string): Patterns {
  return text
    .split(/\r?\n/)
    .slice(0, MOST_PATTERNS)
    .flatMap((line) => {
      const pattern = line.replace(/(?<![\\ ]) +$/, '');
      if (pattern === '' || pattern.startsWith('#') || pattern.length > LONGEST) return [];
      const isNegated = pattern.startsWith('!');
      const body = pattern.slice(isNegated ? 1 : 0);
      const isForFolders = body.endsWith('/');
      const place = body.replace(/\/+$/, '');
      const segments = place
        .split('/')
        .filter((segment) => segment !== '')
        .map((segment): Segment => (segment === '**' ? segment : (segment.match(PARTS) ?? [])));
      if (segments.length === 0) return [];
      // Without a slash before its end it is meant at any depth.
      return [{ segments: place.includes('/') ? segments : ['**' as const, ...segments], isNegated, isForFolders }];
    });
}

/** Whether the last pattern that matches says so; null where none does. `path` is from the folder of the patterns. */
export function saysIgnored(patterns: Patterns, path: readonly string[], isFolder: boolean): boolean | null {
  for (const { segments, isNegated, isForFolders } of patterns.toReversed()) {
    if (isForFolders && !isFolder) continue;
    if (matchPath(segments, path)) return !isNegated;
  }
  return null;
}

/** `**` takes any number of segments. */
function matchPath(pattern: readonly Segment[], path: readonly string[]): boolean {
  const isStar = (at: number): boolean => pattern[at] === '**';
  return matchRun(pattern.length, path.length, isStar, (at, to) => matchSegment(pattern[at] ?? [], path[to] ?? ''));
}

function matchSegment(parts: Segment, name: string): boolean {
  const isStar = (at: number): boolean => parts[at] === '*';
  return matchRun(parts.length, name.length, isStar, (at, to) => matchCharacter(parts[at] ?? '', name[to] ?? ''));
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
): boolean {
  let [at, to, star, resumeAt] = [0, 0, -1, 0];
  while (to < things) {
    if (at < patterns && isStar(at)) [star, resumeAt, at] = [at, to, at + 1];
    else if (at < patterns && isMatch(at, to)) [at, to] = [at + 1, to + 1];
    else if (star !== -1) [at, resumeAt, to] = [star + 1, resumeAt + 1, resumeAt + 1];
    else return false;
  }
  while (at < patterns && isStar(at)) at += 1;
  return at === patterns;
}
