/** Names in an address. What parses addresses resolves `.` and `..`: a name must not lead to another route. */
import { LeaseholdError } from './errors.ts';

/** One segment. @throws LeaseholdError INVALID_REQUEST, as the service would say, for what can be no name and no id */
export function toSegment(name: string, field: string): string {
  if (name === '' || name === '.' || name === '..' || !name.isWellFormed()) {
    throw new LeaseholdError('INVALID_REQUEST', `${field}: must not be empty, "." or ".."`);
  }
  return encodeURIComponent(name);
}

/** Each segment by itself: a slash parts segments. @throws LeaseholdError INVALID_REQUEST */
export function toSegments(path: string): string {
  return path
    .split('/')
    .map((segment) => toSegment(segment, 'path: a segment'))
    .join('/');
}
