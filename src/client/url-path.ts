/** Encodes names as URL path segments. URL parsers resolve `.` and `..`, so such a name would lead to another route. */
import { LeaseholdError } from './errors.ts';

/** @throws LeaseholdError INVALID_REQUEST for a text that cannot be a name or an id */
export function toSegment(name: string, field: string): string {
  if (name === '' || name === '.' || name === '..' || !name.isWellFormed()) {
    throw new LeaseholdError('INVALID_REQUEST', `${field}: must not be empty, "." or ".."`);
  }
  return encodeURIComponent(name);
}

/** Encodes each segment of a path separately. @throws LeaseholdError INVALID_REQUEST */
export function toSegments(path: string): string {
  return path
    .split('/')
    .map((segment) => toSegment(segment, 'path: a segment'))
    .join('/');
}
