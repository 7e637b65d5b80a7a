/**
 * The grammar of credential paths. A path is never normalised; one that violates the grammar is rejected.
 * SOURCE: docs/decisions.md, "Names and paths".
 */

import { invalidRequest } from '../engine/errors.ts';
import type { Brand } from './names.ts';

export type CredentialPath = Brand<string, 'CredentialPath'>;

export const MAX_PATH_LENGTH = 512;
const MAX_SEGMENTS = 32;
const MAX_SEGMENT_LENGTH = 128;
const PATH_CHARACTERS = /^[A-Za-z0-9._\-@:+=~/]+$/;

const SEGMENT = String.raw`(?!\.\.?(?:/|$))[A-Za-z0-9._\-@:+=~]{1,${MAX_SEGMENT_LENGTH}}`;
/** The grammar without the limit of the total length, for the schemas of the interface. */
export const PATH_PART = `${SEGMENT}(?:/${SEGMENT}){0,${MAX_SEGMENTS - 1}}`;

/** The first rule that `text` violates as a credential path; null if it is valid. */
export function pathViolation(text: string): string | null {
  if (text.length === 0 || text.length > MAX_PATH_LENGTH) return `must be 1 to ${MAX_PATH_LENGTH} characters`;
  if (!PATH_CHARACTERS.test(text)) return 'may contain only A-Z a-z 0-9 . _ - @ : + = ~ and / between segments';
  const segments = text.split('/');
  if (segments.length > MAX_SEGMENTS) return `must have at most ${MAX_SEGMENTS} segments`;
  for (const segment of segments) {
    if (segment.length === 0) return 'must not begin or end with /, nor contain //';
    if (segment.length > MAX_SEGMENT_LENGTH) return `each segment must be 1 to ${MAX_SEGMENT_LENGTH} characters`;
    if (segment === '.' || segment === '..') return 'must not contain . or .. as a segment';
  }
  return null;
}

export function parsePath(text: string, field = 'path'): CredentialPath {
  const rule = pathViolation(text);
  if (rule !== null) throw invalidRequest(field, rule);
  return text as CredentialPath;
}
