/**
 * The forms of a value that are searched: its text, base64, hex, UTF-7 and character sets, as symbols without line
 * breaks. The matcher handles the ways to write single characters. The total length of a text's forms is at most 25
 * times its own, whatever it contains, and 160 times up to 512 bytes. A value with secret parts has several texts. Long
 * forms are divided into pieces, so that the length of a match is bounded.
 */
import { MAX_USED_VALUE_BYTES } from '../vault/credentials/credential.ts';
import { DIGIT_62, DIGIT_63, type SearchPattern } from './aho-corasick.ts';
import { secretParts } from './secret-parts.ts';
import { CR, LF } from './spelling-tables.ts';

/** Values below this size, without line breaks, would mask much of ordinary output. */
const SHORTEST_MASKED_BYTES = 4;
const PIECE_BYTES = 64;
const SHORTEST_LINE_BYTES = 8;
/** Larger values are searched only as text and in base64, which bounds memory. */
export const MAX_FULLY_MASKED_BYTES = MAX_USED_VALUE_BYTES;
/** Nested base64 and hex are searched for values up to this size, because each has several alignments. */
const MAX_NESTED_BYTES = 512;
/** How many bytes of forms are added in one piece. */
const PIECE_OF_FORMS_BYTES = 8192;
/** A line break inside a match of this length is line wrapping; inside a shorter one it would be a coincidence. */
const SHORTEST_WRAPPED_BYTES = 16;
const PEM_BORDER = /^-----(?:BEGIN|END) [^\r\n]*-----$/;

const [SPACE, PLUS, SLASH] = [0x20, 0x2b, 0x2f];

const isLongEnough = (text: string): boolean =>
  Buffer.byteLength(text.replaceAll(/[\0\r\n]/g, '')) >= SHORTEST_MASKED_BYTES;

/**
 * Whether every form is searched: the value is neither too short to be masked, nor so large that only likely forms are.
 */
export function isFullyMasked(value: string): boolean {
  return isLongEnough(value.trim()) && Buffer.byteLength(value) <= MAX_FULLY_MASKED_BYTES;
}

/** The patterns of several values. Equal forms, of equal or different values, are stored once. */
export class Patterns {
  readonly all: SearchPattern[] = [];
  readonly #forms = new Set<string>();

  /**
   * Adds the value and its secret parts, in pieces of about a millisecond. Returns whether there are any patterns,
   * because the value may be too short.
   */
  *add(value: string): Generator<undefined, boolean> {
    // WHY trimmed too: a shell's $( ) and many programs remove the final line break.
    const whole = value.toWellFormed();
    const isLarge = Buffer.byteLength(whole) > MAX_FULLY_MASKED_BYTES;
    let isMasked = false;
    for (const text of new Set([whole, whole.trim(), ...secretParts(whole)])) {
      if (!isLongEnough(text)) continue;
      isMasked = true;
      const hasBreaks = /[\r\n]/.test(text);
      let bytes = 0;
      for (const form of isLarge ? likelyForms(text) : allForms(text)) {
        this.#addForm(form, hasBreaks);
        bytes += form.bytes.length;
        if (bytes < PIECE_OF_FORMS_BYTES) continue;
        bytes = 0;
        yield;
      }
      for (const line of linesOf(text)) this.#addForm({ bytes: Buffer.from(line), isBase64: false }, false);
    }
    return isMasked;
  }

  #addForm({ bytes, isBase64 }: Form, hasBreaks: boolean): void {
    const key = `${isBase64} ${hasBreaks} ${bytes.toString('latin1')}`;
    if (this.#forms.has(key)) return;
    this.#forms.add(key);
    const symbols = symbolsOf(bytes, isBase64);
    for (let from = 0; from < symbols.length; from += PIECE_BYTES) {
      // The last piece overlaps the previous one, so that no piece is short.
      const start = Math.max(0, Math.min(from, symbols.length - PIECE_BYTES));
      const piece = symbols.subarray(start, start + PIECE_BYTES);
      if (piece.length < SHORTEST_MASKED_BYTES) continue;
      this.all.push({ symbols: piece, mayBreak: hasBreaks || piece.length >= SHORTEST_WRAPPED_BYTES });
    }
  }
}

interface Form {
  readonly bytes: Buffer;
  /** Whether the digits 62 and 63 match the characters of every base64 alphabet. */
  readonly isBase64: boolean;
}

/** WHY without breaks: such a pattern also finds text that a terminal, `base64` or a mail wrapped at any column. */
function symbolsOf(bytes: Buffer, isBase64: boolean): Uint16Array {
  const symbols = new Uint16Array(bytes.length);
  let length = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] ?? 0;
    if (byte === 0 || byte === LF || byte === CR) continue;
    // A plus or an underscore may stand for a space, and neither begins a match.
    if (length === 0 && byte === SPACE) continue;
    symbols[length++] = isBase64 && byte === PLUS ? DIGIT_62 : isBase64 && byte === SLASH ? DIGIT_63 : byte;
  }
  return symbols.subarray(0, length);
}

function linesOf(text: string): string[] {
  if (!/[\r\n]/.test(text)) return [];
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return lines.filter((line) => Buffer.byteLength(line) >= SHORTEST_LINE_BYTES && !PEM_BORDER.test(line));
}

const plain = (form: Buffer | string): Form => ({ bytes: Buffer.from(form), isBase64: false });
const base64 = (text: string): Form => ({ bytes: Buffer.from(text), isBase64: true });

function likelyForms(text: string): Form[] {
  return [plain(text), ...base64Texts(Buffer.from(text)).map(base64)];
}

function allForms(text: string): Form[] {
  const bytes = Buffer.from(text);
  const hex = bytes.toString('hex');
  // Tokens and logins contain JSON in this form.
  const ofJson = JSON.stringify(text).slice(1, -1);
  return [
    ...likelyForms(text),
    ...(ofJson === text ? [] : base64Digits(Buffer.from(ofJson))).map(base64),
    ...(bytes.length > MAX_NESTED_BYTES ? [] : nestedForms(text, ofJson)),
    ...[hex, hex.toUpperCase(), ...utf7Texts(text), ...charsetForms(text)].map(plain),
  ];
}

/** Nested base64 and hex, and base64 of UTF-16 and of JSON as other libraries write it. */
function nestedForms(text: string, json: string): Form[] {
  const bytes = Buffer.from(text);
  const hex = bytes.toString('hex');
  const digits = base64Digits(bytes);
  const percent = encodeURIComponent(text.toWellFormed());
  const strict = percent.replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const ofJson = [json.replaceAll('/', '\\/'), escaped(json, /[<>&]/g), escaped(json, /[^\0-\x7f]/g)];
  // OAuth clients escape their secret before it becomes a part of a Basic header. SOURCE: RFC 6749, 2.3.1.
  const written = new Set([...ofJson, percent, strict]);
  for (const known of [json, text]) written.delete(known);
  const inBase64 = [...digits, hex, hex.toUpperCase(), ...written].map((form) => Buffer.from(form));
  const inHex = [...digits, hex, hex.toUpperCase()].map((form) => Buffer.from(form).toString('hex'));
  return [
    ...[...inBase64, Buffer.from(text, 'utf16le')].flatMap(base64Digits).map(base64),
    ...inHex.flatMap((form) => [form, form.toUpperCase()]).map(plain),
  ];
}

function escaped(text: string, characters: RegExp): string {
  return text.replaceAll(characters, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * The three alignments of a value within a longer base64 text. Digits shared with neighbouring bytes are omitted, so up
 * to four bits at either end stay visible.
 */
function base64Digits(bytes: Buffer): string[] {
  return ALIGNMENTS.map((shift) =>
    alignedText(bytes, shift).slice(0, Math.floor((shiftedBits(shift) + 8 * bytes.length) / 6)),
  );
}

/** The three alignments, and the last piece of each with the digits that end the text. */
function base64Texts(bytes: Buffer): string[] {
  const digits = base64Digits(bytes);
  const ends = ALIGNMENTS.map((shift) => alignedText(bytes, shift)).filter((text, at) => text !== digits[at]);
  return [
    ...digits,
    ...[...ends, ...ends.map((text) => text.replace(/=+$/, ''))].map((text) => text.slice(-PIECE_BYTES)),
  ];
}

/** Numbers of bytes before the value, modulo three. */
const ALIGNMENTS = [0, 1, 2] as const;

/** How many bits of the value are in the digit that it shares with the preceding bytes, as a negative number. */
const shiftedBits = (shift: number): number => 8 * shift - 6 * Math.ceil((8 * shift) / 6);

function alignedText(bytes: Buffer, shift: number): string {
  return Buffer.concat([Buffer.alloc(shift), bytes])
    .toString('base64')
    .slice(Math.ceil((8 * shift) / 6));
}

/**
 * UTF-16 in either byte order, Latin-1, and UTF-8 of each half of a pair. WHY not for ASCII: zero bytes are skipped.
 */
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

/**
 * The value in UTF-7. SOURCE: RFC 2152. Encoders differ in which marks they write directly, and in whether a run always
 * ends with a mark.
 */
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
