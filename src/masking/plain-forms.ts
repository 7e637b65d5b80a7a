/**
 * The forms of a value that are searched: its text, base64, hex, UTF-7 and character sets, as symbols without line
 * breaks. How single characters are written is the matcher's concern. Their total length is at most 25 times the
 * value's, whatever it contains. Long ones are divided into pieces, so that a match has a bounded length.
 */
import { DIGIT_62, DIGIT_63, type SearchPattern } from './aho-corasick.ts';
import { secretParts } from './secret-parts.ts';

/** Shorter values, without line breaks, would mask much of ordinary output. */
const SHORTEST_MASKED_BYTES = 4;
/** Maximum length of a pattern. */
const PIECE_BYTES = 64;
const SHORTEST_LINE_BYTES = 8;
/** Larger values are searched as text and in base64 only, which bounds memory to about 100 bytes for each byte. */
export const MAX_FULLY_MASKED_BYTES = 8 * 1024;
/** Base64 in base64 is searched for values up to this size: nine alignments. */
const MAX_NESTED_BYTES = 512;
/** A line break inside a longer match is line wrapping; inside a shorter one it would be a coincidence. */
const SHORTEST_WRAPPED_BYTES = 16;
const PEM_BORDER = /^-----(?:BEGIN|END) [^\r\n]*-----$/;

const SPACE = 0x20;
/** Passed over inside a match, so patterns have none. */
const isPassedOver = (symbol: number): boolean => symbol === 0 || symbol === 0x0a || symbol === 0x0d;

const isLongEnough = (text: string): boolean =>
  Buffer.byteLength(text.replaceAll(/[\0\r\n]/g, '')) >= SHORTEST_MASKED_BYTES;

/** Whether every form is searched: neither too short to be masked, nor so large that only the likely ones are. */
export function isFullyMasked(value: string): boolean {
  return isLongEnough(value.trim()) && Buffer.byteLength(value) <= MAX_FULLY_MASKED_BYTES;
}

/** Patterns by their symbols. */
export type Patterns = Map<string, SearchPattern>;

/** Adds the patterns of the value and of its secret parts. Returns whether there are any: the value may be too short. */
export function addPatterns(patterns: Patterns, value: string): boolean {
  // WHY trimmed too: a shell's $( ) and many programs remove the line break at the end.
  const whole = value.toWellFormed();
  const isLarge = Buffer.byteLength(whole) > MAX_FULLY_MASKED_BYTES;
  let isMasked = false;
  for (const text of new Set([whole, whole.trim(), ...secretParts(whole)])) {
    if (!isLongEnough(text)) continue;
    isMasked = true;
    const hasBreaks = /[\r\n]/.test(text);
    for (const form of isLarge ? likelyForms(text) : allForms(text)) add(patterns, form, hasBreaks);
    for (const line of linesOf(text)) add(patterns, Buffer.from(line), false);
  }
  return isMasked;
}

function add(patterns: Patterns, form: ArrayLike<number>, hasBreaks: boolean): void {
  // WHY: a pattern without line breaks also finds text that a terminal, `base64` or a mail wrapped at any column.
  let symbols = Uint16Array.from(form).filter((symbol) => !isPassedOver(symbol));
  // A plus or an underscore may be a space, and neither begins a match.
  while (symbols[0] === SPACE) symbols = symbols.subarray(1);
  for (let from = 0; from < symbols.length; from += PIECE_BYTES) {
    // The last piece overlaps the one before, so that none is short.
    const start = Math.max(0, Math.min(from, symbols.length - PIECE_BYTES));
    const piece = symbols.slice(start, start + PIECE_BYTES);
    if (piece.length < SHORTEST_MASKED_BYTES) continue;
    const mayBreak = hasBreaks || piece.length >= SHORTEST_WRAPPED_BYTES;
    const key = String.fromCharCode(...piece);
    // Of equal patterns the one that allows line breaks is kept.
    if (patterns.get(key)?.mayBreak !== true) patterns.set(key, { symbols: piece, mayBreak });
  }
}

function linesOf(text: string): string[] {
  if (!/[\r\n]/.test(text)) return [];
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return lines.filter((line) => Buffer.byteLength(line) >= SHORTEST_LINE_BYTES && !PEM_BORDER.test(line));
}

const likelyForms = (text: string): ArrayLike<number>[] => {
  const bytes = Buffer.from(text);
  return [bytes, ...base64Texts(bytes).map(toDigits)];
};

function allForms(text: string): ArrayLike<number>[] {
  const bytes = Buffer.from(text);
  const hex = bytes.toString('hex');
  const base64 = base64Texts(bytes);
  const nested = bytes.length > MAX_NESTED_BYTES ? [] : base64.flatMap((inner) => base64Texts(Buffer.from(inner)));
  const json = JSON.stringify(text).slice(1, -1);
  // As tokens and logins contain JSON.
  const ofJson = json === text ? [] : base64Texts(Buffer.from(json));
  return [
    bytes,
    ...[...base64, ...nested, ...ofJson].map(toDigits),
    ...[hex, hex.toUpperCase(), ...utf7Texts(text)].map((form) => Buffer.from(form)),
    ...charsetForms(text),
  ];
}

/**
 * The three alignments of a value within a longer base64 text. Of digits shared with neighbouring bytes none are
 * included, so up to four bits at either end stay visible; those of a value at the text's end are.
 */
function base64Texts(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    const from = Math.ceil((shift * 8) / 6);
    const own = text.slice(from, Math.floor(((shift + bytes.length) * 8) / 6));
    return own.length === text.length - from ? [own] : [own, text.slice(from), text.slice(from).replace(/=+$/, '')];
  });
}

function toDigits(text: string): Uint16Array {
  return Uint16Array.from(text, (mark) => (mark === '+' ? DIGIT_62 : mark === '/' ? DIGIT_63 : mark.charCodeAt(0)));
}

/** UTF-16 in either order, Latin-1, and UTF-8 of each half of a pair. In UTF-16 of ASCII, zero bytes are passed over. */
function charsetForms(text: string): Buffer[] {
  if (/^[\0-\x7f]*$/.test(text)) return [];
  const little = Buffer.from(text, 'utf16le');
  const halves = [...text].every((mark) => mark.length === 1) ? [] : [Buffer.concat(text.split('').map(utf8OfUnit))];
  const latin = /^[\0-\xff]*$/.test(text) ? [Buffer.from(text, 'latin1')] : [];
  return [little, Buffer.from(little).swap16(), ...latin, ...halves];
}

function utf8OfUnit(unit: string): Buffer {
  const code = unit.charCodeAt(0);
  if (code < 0xd800 || code > 0xdfff) return Buffer.from(unit);
  return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]);
}

/** SOURCE: RFC 2152. Encoders differ in which marks they write directly, and in whether a run always has its end. */
function utf7Texts(text: string): string[] {
  const strict = /[A-Za-z0-9'(),\-./:? \t\r\n]/;
  const optional = /[A-Za-z0-9'(),\-./:? \t\r\n!"#$%&*;<=>@[\]^_`{|}]/;
  const forms = [strict, optional].flatMap((direct) => [utf7(text, direct, true), utf7(text, direct, false)]);
  return [...new Set(forms)].filter((form) => form !== text);
}

function utf7(text: string, direct: RegExp, hasEnds: boolean): string {
  const run = new RegExp(`\\+|(?:(?!${direct.source}|\\+)[^])+`, 'g');
  return text.replaceAll(run, (marks, at: number) => {
    if (marks === '+') return '+-';
    const digits = Buffer.from(marks, 'utf16le').swap16().toString('base64').replace(/=+$/, '');
    const isEndNeeded = hasEnds || /^[A-Za-z0-9+/-]/.test(text.slice(at + marks.length));
    return `+${digits}${isEndNeeded ? '-' : ''}`;
  });
}
