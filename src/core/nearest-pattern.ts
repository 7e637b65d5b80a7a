/** Finds the pattern that is nearest to a path, which the explanation of a denial names. */
import type { CredentialPath } from './path.ts';
import type { Pattern } from './pattern.ts';

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
 * As `nearestPattern`, of patterns in order: the longest common prefix is that of a neighbour of the path, and the
 * first pattern with this prefix follows the prefix.
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
