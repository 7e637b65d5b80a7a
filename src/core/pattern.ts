/**
 * Resource patterns: an exact path, `prefix/*` (everything below `prefix/`, at any depth, not `prefix` itself), or `*`.
 * SOURCE: docs/decisions.md, "Policies".
 */
import { invalidRequest } from '../engine/errors.ts';
import type { Brand } from './names.ts';
import { type CredentialPath, pathViolation } from './path.ts';

export type Pattern = Brand<string, 'Pattern'>;

/** An interval of paths in code-point order: `from` ≤ path < `to`. */
export interface PathRange {
  readonly from: string;
  readonly to: string;
}

export function parsePattern(text: string, field = 'resources'): Pattern {
  const path = text === '*' ? null : text.endsWith('/*') ? text.slice(0, -2) : text;
  const rule = path === null ? null : pathViolation(path);
  if (path?.includes('*')) throw invalidRequest(field, '* is allowed only as the whole pattern, or at the end after /');
  if (rule !== null) throw invalidRequest(field, `a pattern's path ${rule}`);
  return text as Pattern;
}

export function matches(pattern: Pattern, path: CredentialPath): boolean {
  if (pattern === '*') return true;
  if (pattern.endsWith('/*')) return path.startsWith(pattern.slice(0, -1));
  return (pattern as string) === path;
}

/**
 * All patterns that match `path` and have a length in use, from the widest to the exact one. A path of n segments has n
 * + 1.
 */
export function matchingPatterns(path: CredentialPath, inUse: { has(length: number): boolean }): Pattern[] {
  const patterns: string[] = inUse.has(1) ? ['*'] : [];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
    if (inUse.has(slash + 2)) patterns.push(`${path.slice(0, slash)}/*`);
  }
  if (inUse.has(path.length)) patterns.push(path);
  return patterns as Pattern[];
}

function rangeOf(pattern: Pattern): PathRange {
  if (pattern === '*') return { from: '', to: '\u007f' };
  // '0' follows '/' in code-point order, so that ['prefix/', 'prefix0') is exactly the paths below the prefix.
  if (pattern.endsWith('/*')) return { from: pattern.slice(0, -1), to: `${pattern.slice(0, -2)}0` };
  // '!' precedes every character that a path may contain.
  return { from: pattern, to: `${pattern}!` };
}

/** The paths that the patterns match, as ranges in order that do not overlap. */
export function toRanges(patterns: Iterable<Pattern>): PathRange[] {
  // Patterns sort in the order of their ranges, because '*' precedes every character that a path may contain.
  const merged: PathRange[] = [];
  for (const pattern of [...patterns].sort()) append(merged, rangeOf(pattern));
  return merged;
}

/** Appends a range, or extends the last one. Callers append ranges in the order of `from`. */
function append(merged: PathRange[], range: PathRange): void {
  const last = merged.at(-1);
  if (last === undefined || range.from >= last.to) merged.push(range);
  else if (range.to > last.to) merged[merged.length - 1] = { from: last.from, to: range.to };
}

/** Merges lists of such ranges into one, in a linear pass for each list. */
export function unionOf(lists: readonly (readonly PathRange[])[]): readonly PathRange[] {
  const [first = [], ...others] = lists;
  return others.reduce(mergeTwo, first);
}

function mergeTwo(a: readonly PathRange[], b: readonly PathRange[]): PathRange[] {
  const merged: PathRange[] = [];
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    const [left, right] = [a[i], b[j]];
    const takesLeft = right === undefined || (left !== undefined && left.from <= right.from);
    const next = takesLeft ? left : right;
    if (takesLeft) i++;
    else j++;
    if (next !== undefined) append(merged, next);
  }
  return merged;
}

/** Whether every path that the pattern matches is in the ranges, which are merged. */
export function coversPattern(ranges: readonly PathRange[], pattern: Pattern): boolean {
  const { from, to } = rangeOf(pattern);
  const range = ranges[rangeFrom(ranges, from)];
  return range !== undefined && range.from <= from && to <= range.to;
}

/** The index of the first range that ends after the path: the first that can contain the path or a later one. */
export function rangeFrom(ranges: readonly PathRange[], path: string): number {
  let [low, high] = [0, ranges.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((ranges[middle]?.to ?? '') > path) high = middle;
    else low = middle + 1;
  }
  return low;
}

export const ALL_PATHS: readonly PathRange[] = [rangeOf('*' as Pattern)];

/** The pattern with the longest common prefix with the path; among equals the first in code-point order. */
export function nearestPattern(patterns: Iterable<Pattern>, path: CredentialPath): Pattern | null {
  let nearest: Pattern | null = null;
  let longest = -1;
  for (const pattern of patterns) {
    let common = 0;
    while (common < pattern.length && pattern[common] === path[common]) common++;
    const isFirst = common === longest && nearest !== null && pattern < nearest;
    if (common > longest || isFirst) [nearest, longest] = [pattern, common];
  }
  return nearest;
}

/**
 * Does what `nearestPattern` does, for patterns in order: a neighbour of the path has the longest common prefix,
 * and the first pattern with this prefix follows the prefix.
 */
export function nearestOf(patterns: readonly Pattern[], path: CredentialPath): Pattern | null {
  const at = lowerBound(patterns, path);
  const longest = Math.max(commonLength(patterns[at - 1], path), commonLength(patterns[at], path));
  return patterns[lowerBound(patterns, path.slice(0, longest))] ?? null;
}

function commonLength(pattern: Pattern | undefined, path: CredentialPath): number {
  if (pattern === undefined) return 0;
  let common = 0;
  while (common < pattern.length && pattern[common] === path[common]) common++;
  return common;
}

/** The index of the first pattern that is not before the text. */
function lowerBound(patterns: readonly Pattern[], text: string): number {
  let [low, high] = [0, patterns.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((patterns[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
