/**
 * The one rule by which names of other programs become paths. Letters lose their accents, each run of characters that a path can't
 * have becomes one `-`, and those at the ends of a name go. Nothing is cut, and what is left without a character is refused.
 */

import { pathViolation } from '../../core/path.ts';
import { UsageError } from '../../platform/errors.ts';

const FOREIGN = /[^A-Za-z0-9._\-@:+=~]+/g;
const MARKS = /\p{M}+/gu;
/** Longer than any name that fits, and short enough to be worked on. */
const LONGEST_NAME = 1024;

export type Named = { readonly path: string } | { readonly refused: string };

/** A name as a segment of a path; empty where nothing of it fits. */
export function toSegment(name: string): string {
  const plain = name.slice(0, LONGEST_NAME).normalize('NFKD').replaceAll(MARKS, '');
  const segment = plain.replaceAll(FOREIGN, ' ').trim().replaceAll(' ', '-');
  return /^\.{1,2}$/.test(segment) ? '' : segment;
}

/** The path of these names below the prefix, or the rule that they break. */
export function toPath(prefix: readonly string[], names: readonly string[]): Named {
  const segments = names.map(toSegment);
  if (names.length === 0 || segments.includes('')) {
    return { refused: 'its name has no character that a path can have; rename it, or put it in by hand' };
  }
  const path = [...prefix, ...segments].join('/');
  const rule = pathViolation(path);
  return rule === null ? { path } : { refused: `its path ${rule}` };
}

/** What goes before every path, as segments; none where nothing was given. @throws UsageError */
export function parsePrefix(text: string | null): readonly string[] {
  if (text === null || text === '') return [];
  const prefix = text.endsWith('/') ? text.slice(0, -1) : text;
  const rule = pathViolation(prefix);
  if (rule !== null) throw new UsageError(`--prefix: ${rule}`);
  return prefix.split('/');
}
