/**
 * The grammars of the texts of a use besides its URL: the caller's purpose and headers. SOURCE: docs/api.md, "Brokered
 * use"; RFC 9110, 5.1 and 5.5.
 */
import { invalidRequest } from './errors.ts';

export const MAX_PURPOSE_LENGTH = 200;
/** Without control characters, because the log is printed on terminals, and PostgreSQL cannot store U+0000. */
export const PURPOSE = /^\P{Cc}*$/u;
export const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}$/;
/** Latin-1, as HTTP/1.1 sends it, without control characters. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,16384}$/;

/** @throws INVALID_REQUEST naming `field` */
export function parsePurpose(text: string, field = 'purpose'): string {
  // A code point outside the Basic Multilingual Plane takes two UTF-16 code units.
  const isTooLong = text.length > 2 * MAX_PURPOSE_LENGTH || [...text].length > MAX_PURPOSE_LENGTH;
  if (text === '' || isTooLong || !text.isWellFormed() || !PURPOSE.test(text)) {
    throw invalidRequest(field, `must be 1 to ${MAX_PURPOSE_LENGTH} characters without control characters`);
  }
  return text;
}

/** The headers as pairs. @throws INVALID_REQUEST, without the invalid name or value */
export function parseHeaders(headers: Readonly<Record<string, string>>): [name: string, value: string][] {
  return Object.entries(headers).map(([name, value]) => {
    if (!HEADER_NAME.test(name)) throw invalidRequest('headers', 'must have names of 1 to 256 token characters');
    if (!HEADER_VALUE.test(value)) {
      throw invalidRequest(
        'headers',
        'must have values of at most 16384 Latin-1 characters without control characters',
      );
    }
    return [name, value];
  });
}
