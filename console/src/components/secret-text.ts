/**
 * Converts between a secret and the text of its field, without loss. A text field turns CR LF and CR into LF. A
 * carriage return is therefore kept as a noncharacter, which no text outside a program contains.
 */
import { LeaseholdError } from '../../../src/client/errors.ts';
import { countText } from './words.ts';

/** SOURCE: Unicode, section 23.7: noncharacters are for internal use. */
const STAND_IN = '\ufdd0';

/** @throws LeaseholdError INVALID_REQUEST for text that the field cannot keep unchanged */
export function toFieldText(text: string): string {
  if (text.includes('\u0000')) throw unfit('a NUL character (U+0000)');
  if (text.includes(STAND_IN)) throw unfit('the noncharacter U+FDD0');
  if (!text.isWellFormed()) throw unfit('half of a character (an unpaired surrogate)');
  return text.replaceAll('\r', STAND_IN);
}

/** The secret that the field contains. @throws LeaseholdError INVALID_REQUEST */
export function fromFieldText(fieldText: string): string {
  if (fieldText.includes('\u0000')) throw unfit('a NUL character (U+0000)');
  if (!fieldText.isWellFormed()) throw unfit('half of a character (an unpaired surrogate)');
  return fieldText.replaceAll(STAND_IN, '\r');
}

/** The remedy for text that a text field cannot keep or rejects. */
export const FROM_FILE = 'Choose “the content of a file” instead.';

function unfit(what: string): LeaseholdError {
  return new LeaseholdError('INVALID_REQUEST', `value: contains ${what}, which a text field cannot keep. ${FROM_FILE}`);
}

/** A description such as `4 lines, 71 bytes, ends with a line break`; empty for an empty text. */
export function describeSecret(text: string): string {
  if (text === '') return '';
  const breaks = text.match(/\r\n|\r|\n/g) ?? [];
  const endsWithBreak = /[\r\n]$/.test(text);
  const kinds = [...new Set(breaks)].map((each) => ({ '\r\n': 'CRLF', '\r': 'CR', '\n': 'LF' })[each]);
  const isPlain = kinds.every((kind) => kind === 'LF');
  const trailing = text.replace(/[\r\n]+$/, '');
  return [
    countText(breaks.length + (endsWithBreak ? 0 : 1), 'line'),
    countText(new TextEncoder().encode(text).length, 'byte'),
    ...(isPlain ? [] : [`line breaks: ${kinds.join(' and ')}`]),
    ...(endsWithBreak ? ['ends with a line break'] : []),
    ...(/^\s/.test(text) ? ['begins with white space'] : []),
    ...(/\s$/.test(trailing) ? ['ends with white space'] : []),
  ].join(', ');
}
