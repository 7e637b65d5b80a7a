/**
 * Resource patterns: an exact path, `prefix/*` (everything below `prefix/`, at any depth, not `prefix` itself), or `*`.
 * SOURCE: decisions, "Policies and decisions".
 */
import type { Brand } from './brand.ts';
import { invalid } from './fault.ts';
import { brokenPathRule, type CredentialPath } from './path.ts';

export type Pattern = Brand<string, 'Pattern'>;

/** A run of paths in code-point order: `from` ≤ path < `to`. */
export interface PathRange {
  readonly from: string;
  readonly to: string;
}

/** @throws INVALID_REQUEST naming `field` and the rule. */
export function parsePattern(text: string, field = 'resources'): Pattern {
  const path = text === '*' ? null : text.endsWith('/*') ? text.slice(0, -2) : text;
  const rule = path === null ? null : brokenPathRule(path);
  if (path?.includes('*')) throw invalid(field, 'a * may stand only alone, or once at the end after a slash');
  if (rule !== null) throw invalid(field, `a pattern's path ${rule}`);
  return text as Pattern;
}

export function matches(pattern: Pattern, path: CredentialPath): boolean {
  if (pattern === '*') return true;
  if (pattern.endsWith('/*')) return path.startsWith(pattern.slice(0, -1));
  return (pattern as string) === path;
}

/**
 * All patterns that match `path`, from the widest to the exact one: as many as the path is deep, and two. Of those only the ones
 * with a length in use.
 */
export function patternsOf(path: CredentialPath, inUse: { has(length: number): boolean }): Pattern[] {
  const patterns: string[] = inUse.has(1) ? ['*'] : [];
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) {
    if (inUse.has(slash + 2)) patterns.push(`${path.slice(0, slash)}/*`);
  }
  if (inUse.has(path.length)) patterns.push(path);
  return patterns as Pattern[];
}

function rangeOf(pattern: Pattern): PathRange {
  if (pattern === '*') return { from: '', to: '\u007f' };
  // '0' is the character after '/', so that ['prefix/', 'prefix0') holds just what lies below the prefix.
  if (pattern.endsWith('/*')) return { from: pattern.slice(0, -1), to: `${pattern.slice(0, -2)}0` };
  // '!' stands before every character a path may have.
  return { from: pattern, to: `${pattern}!` };
}

/** What the patterns cover, as ranges that do not overlap, in order. */
export function rangesOf(patterns: Iterable<Pattern>): PathRange[] {
  const ranges = [...patterns].map(rangeOf).sort((a, b) => (a.from < b.from ? -1 : a.from > b.from ? 1 : 0));
  const merged: PathRange[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last === undefined || range.from >= last.to) merged.push(range);
    else if (range.to > last.to) merged[merged.length - 1] = { from: last.from, to: range.to };
  }
  return merged;
}

export const EVERYTHING: readonly PathRange[] = [rangeOf('*' as Pattern)];
