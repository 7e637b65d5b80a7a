/**
 * Maps names of other programs to paths. Letters lose their accents, each run of characters that a path cannot contain
 * becomes one `-`, and such runs at the ends of a name are removed. Names are never truncated; a name without any valid
 * character is rejected.
 */

import { pathViolation } from '../../core/path.ts';
import { UsageError } from '../../platform/errors.ts';

const INVALID_RUN = /[^A-Za-z0-9._\-@:+=~]+/g;
const COMBINING_MARKS = /\p{M}+/gu;
/** Longer than any valid segment; bounds the cost of normalization. */
const MAX_NAME_LENGTH = 1024;

export type Named = { readonly path: string } | { readonly rejected: string };

/** A name as a segment of a path; empty when no character of it is valid. */
export function toSegment(name: string): string {
  const plain = name.slice(0, MAX_NAME_LENGTH).normalize('NFKD').replaceAll(COMBINING_MARKS, '');
  const segment = plain.replaceAll(INVALID_RUN, ' ').trim().replaceAll(' ', '-');
  return /^\.{1,2}$/.test(segment) ? '' : segment;
}

/** The path of these names below the prefix, or the rule that it breaks. */
export function toPath(prefix: readonly string[], names: readonly string[]): Named {
  const segments = names.map(toSegment);
  if (names.length === 0 || segments.includes('')) {
    return { rejected: 'its name has no character that a path can contain; rename it, or store it with leasehold put' };
  }
  const path = [...prefix, ...segments].join('/');
  const rule = pathViolation(path);
  return rule === null ? { path } : { rejected: `its path ${rule}` };
}

/** The segments of --prefix; empty when it is not given. @throws UsageError */
export function parsePrefix(text: string | null): readonly string[] {
  if (text === null || text === '') return [];
  const prefix = text.endsWith('/') ? text.slice(0, -1) : text;
  const rule = pathViolation(prefix);
  if (rule !== null) throw new UsageError(`--prefix: ${rule}`);
  return prefix.split('/');
}
