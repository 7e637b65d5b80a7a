/**
 * The ways to write ONE character: as it is, percent-encoded, as escapes of programming languages, shells and JSON, as
 * entities of HTML, in quoted-printable. All readings of a stream of bytes are followed at once, including readings of
 * readings: the meaning of a text is unknown, so none is preferred. Memory and time per byte are bounded.
 */
import {
  CONTROLS,
  CR,
  characterNamed,
  HEX,
  IS_FREE,
  IS_MARK,
  IS_WRAPPED,
  KIND,
  type Kind,
  LF,
  MARK,
  nextInName,
  OPENED,
  TYPOGRAPHIC,
} from './spelling-tables.ts';

/** How many layers of other spellings a character may be written in. */
const MAX_LAYERS = 3;
const MAX_SPELLING_BYTES = 48;
/** Positions that are remembered: more than the longest spelling. A power of two. */
const SLOTS = 64;
/** Spellings that may be open at a position, and readings that may end at one. Hostile texts have more. */
const MAX_OPEN = 10;
const MAX_READINGS = 12;
/** Line breaks inside a spelling, CR and LF counted separately. */
const MAX_BREAKS = 3;
const MAX_CODE_POINT = 0x10ffff;

/** The code for a colour sequence, which is no character. */
export const COLOUR = -1;
/** Values below this are bytes. The others are code points beyond ASCII, plus this base. */
export const CODE_POINT_BASE = 256;

const isDigit = (character: number): boolean => character >= MARK.zero && character <= MARK.nine;

export class Spellings {
  /** The readings that end with the last byte: the start of each, and its character. */
  readonly starts = new Int32Array(MAX_READINGS);
  readonly characters = new Int32Array(MAX_READINGS);
  count = 0;
  steps = 0;
  readonly broken = new Uint8Array(MAX_READINGS);
  readonly #layers = new Uint8Array(MAX_READINGS);
  /** Open spellings by the position up to which they were read. Positions are 32-bit integers that wrap. */
  readonly #positions = new Int32Array(SLOTS).fill(-1);
  readonly #counts = new Uint8Array(SLOTS);
  readonly #kinds = new Uint8Array(SLOTS * MAX_OPEN);
  readonly #lengths = new Uint8Array(SLOTS * MAX_OPEN);
  readonly #values = new Int32Array(SLOTS * MAX_OPEN);
  readonly #begins = new Int32Array(SLOTS * MAX_OPEN);
  readonly #depths = new Uint8Array(SLOTS * MAX_OPEN);
  readonly #breaks = new Uint8Array(SLOTS * MAX_OPEN);
  #at = 0;
  #slot = 0;
  #begin = 0;
  #layer = 0;
  #broken = 0;

  get isOpen(): boolean {
    return (this.#counts[this.#slot] ?? 0) > 0;
  }

  reset(): void {
    this.#positions.fill(-1);
    this.#counts.fill(0);
    this.count = 0;
  }

  /** Reads the byte at the position and finds the readings that end with it. */
  read(byte: number, position: number): void {
    const at = (position + 1) | 0;
    this.#at = at;
    this.#slot = at & (SLOTS - 1);
    this.#positions[this.#slot] = at;
    this.#counts[this.#slot] = 0;
    this.starts[0] = position;
    this.characters[0] = byte;
    this.#layers[0] = 0;
    this.broken[0] = 0;
    this.count = 1;
    // The next layer also reads the readings that were found.
    for (let index = 0; index < this.count; index++) this.#follow(index);
  }

  /** The start positions of the spellings that are open at the position. Returns how many were written to `found`. */
  openAt(position: number, found: Int32Array): number {
    const slot = position & (SLOTS - 1);
    if (this.#positions[slot] !== position) return 0;
    const count = this.#counts[slot] ?? 0;
    for (let index = 0; index < count; index++) found[index] = this.#begins[slot * MAX_OPEN + index] ?? 0;
    return count;
  }

  get isInSequence(): boolean {
    const base = this.#slot * MAX_OPEN;
    for (let index = 0; index < (this.#counts[this.#slot] ?? 0); index++)
      if ((this.#kinds[base + index] ?? 0) >= KIND.escape) return true;
    return false;
  }

  /** Continues the spellings that are open at the reading's start, and opens those that its character opens. */
  #follow(index: number): void {
    const layer = this.#layers[index] ?? 0;
    const character = this.characters[index] ?? 0;
    const start = this.starts[index] ?? 0;
    this.steps++;
    if (layer >= MAX_LAYERS || character < 0 || character >= CODE_POINT_BASE) return;
    const slot = start & (SLOTS - 1);
    const isBreak = character === LF || character === CR;
    if (this.#positions[slot] === start) {
      const base = slot * MAX_OPEN;
      const open = this.#counts[slot] ?? 0;
      for (let other = 0; other < open; other++) {
        const place = base + other;
        const begin = this.#begins[place] ?? 0;
        if (((this.#at - begin) | 0) > MAX_SPELLING_BYTES) continue;
        const kind = this.#kinds[place] ?? 0;
        const isAllowed = IS_FREE[kind] === 1 || (isBreak && IS_WRAPPED[kind] === 1);
        if (layer > 0 && this.#depths[place] === 1 && !isAllowed) continue;
        this.steps++;
        this.#begin = begin;
        this.#layer = Math.max(this.#depths[place] ?? 0, layer + 1);
        this.#broken = (this.#breaks[place] ?? 0) + (this.broken[index] ?? 0);
        if (isBreak) this.#carry(place);
        this.#advance(kind as Kind, this.#lengths[place] ?? 0, this.#values[place] ?? 0, character);
      }
    }
    this.#begin = start;
    this.#layer = layer + 1;
    this.#broken = this.broken[index] ?? 0;
    const opened = OPENED[character] ?? 0;
    if (opened !== 0) this.#open(opened as Kind, 0, opened === KIND.doubled ? character : 0);
    // Forms and encoded words write spaces in this way.
    else if (character === MARK.plus) this.#emit(MARK.space);
    if (character === MARK.underscore) this.#emit(MARK.space);
  }

  /** Carries open spellings over a line break, because lines may be wrapped inside a spelling. */
  #carry(place: number): void {
    if (this.#broken >= MAX_BREAKS || IS_WRAPPED[this.#kinds[place] ?? 0] === 0) return;
    this.#broken++;
    this.#open((this.#kinds[place] ?? 0) as Kind, this.#lengths[place] ?? 0, this.#values[place] ?? 0);
    this.#broken--;
  }

  #open(kind: Kind, length: number, value: number): void {
    const base = this.#slot * MAX_OPEN;
    const count = this.#counts[this.#slot] ?? 0;
    for (let place = base; place < base + count; place++) {
      const isSame = this.#kinds[place] === kind && this.#begins[place] === this.#begin;
      if (isSame && this.#values[place] === value && this.#lengths[place] === length) return;
    }
    if (count === MAX_OPEN) return;
    const place = base + count;
    this.#counts[this.#slot] = count + 1;
    this.#kinds[place] = kind;
    this.#lengths[place] = length;
    this.#values[place] = value;
    this.#begins[place] = this.#begin;
    this.#depths[place] = this.#layer;
    this.#breaks[place] = this.#broken;
  }

  #emit(character: number): void {
    for (let index = 1; index < this.count; index++)
      if (this.starts[index] === this.#begin && this.characters[index] === character) return;
    if (this.count === MAX_READINGS) return;
    this.starts[this.count] = this.#begin;
    this.characters[this.count] = character;
    this.#layers[this.count] = this.#layer;
    this.broken[this.count] = this.#broken === 0 ? 0 : 1;
    this.count++;
  }

  #emitCodePoint(codePoint: number): void {
    if (codePoint > MAX_CODE_POINT) return;
    this.#emit(codePoint < 0x80 ? codePoint : codePoint + CODE_POINT_BASE);
    const plain = TYPOGRAPHIC.get(codePoint);
    if (plain !== undefined) this.#emit(plain);
  }

  /** Continues a spelling with the character. `kind`, `length` and `value` describe how far it was read. */
  #advance(kind: Kind, length: number, value: number, character: number): void {
    const hex = HEX[character] ?? -1;
    switch (kind) {
      case KIND.percent:
        if (hex >= 0) this.#open(KIND.percentHex, 0, hex);
        else if (character === MARK.lowerU || character === MARK.upperU) this.#open(KIND.unit, 0, 0);
        else if (character === MARK.percent) this.#emit(MARK.percent);
        return;
      case KIND.percentHex:
      case KIND.equalsHex:
        if (hex >= 0) this.#emit(value * 16 + hex);
        return;
      case KIND.equals:
        if (hex >= 0) this.#open(KIND.equalsHex, 0, hex);
        else if (character === LF) this.#emit(LF);
        else if (character === CR) this.#open(KIND.softBreak, 0, 0);
        return;
      case KIND.softBreak:
        if (character === LF) this.#emit(LF);
        return;
      case KIND.backslash:
        this.#afterBackslash(character, hex);
        return;
      case KIND.unit:
        if (length === 0 && character === MARK.openBrace) this.#open(KIND.braced, 0, 0);
        else if (hex >= 0 && length < 3) this.#open(KIND.unit, length + 1, value * 16 + hex);
        else if (hex >= 0) this.#emitCodePoint(value * 16 + hex);
        return;
      case KIND.unitLong:
        if (hex >= 0 && length < 7 && value < MAX_CODE_POINT) this.#open(KIND.unitLong, length + 1, value * 16 + hex);
        else if (hex >= 0 && length === 7) this.#emitCodePoint(value * 16 + hex);
        return;
      case KIND.byte:
        if (length === 0 && character === MARK.openBrace) this.#open(KIND.braced, 0, 0);
        else if (hex >= 0 && length === 0) this.#open(KIND.byte, 1, hex);
        else if (hex >= 0) this.#emitBoth(value * 16 + hex);
        return;
      case KIND.braced:
        if (hex >= 0 && length < 8 && value < MAX_CODE_POINT) this.#open(KIND.braced, length + 1, value * 16 + hex);
        else if (character === MARK.closeBrace && length > 0) this.#emitCodePoint(value);
        return;
      case KIND.digits:
        if (length < 3 && isDigit(character)) {
          this.#openDigits(length + 1, value * 10 + character - MARK.zero);
        }
        return;
      case KIND.bareHex:
        // CSS and LDAP write up to six digits, and CSS a blank that ends them.
        if (character === MARK.space && length >= 1) this.#emitCodePoint(value);
        else if (hex >= 0 && length < 6) {
          this.#open(KIND.bareHex, length + 1, value * 16 + hex);
          this.#emitBoth(value * 16 + hex);
        }
        return;
      default:
        this.#advanceMore(kind, length, value, character);
    }
  }

  #advanceMore(kind: Kind, length: number, value: number, character: number): void {
    const hex = HEX[character] ?? -1;
    switch (kind) {
      case KIND.ampersand:
        if (character === MARK.hash) this.#open(KIND.number, 0, 0);
        else this.#openName(nextInName(0, character));
        return;
      case KIND.name:
        if (character === MARK.semicolon) this.#emitNamed(value);
        else this.#openName(nextInName(value, character));
        return;
      case KIND.number:
        if (character === MARK.lowerX || character === MARK.upperX) this.#open(KIND.hex, 0, 0);
        else if (isDigit(character)) this.#openNumber(KIND.decimal, 1, character - MARK.zero);
        return;
      case KIND.decimal:
        if (character === MARK.semicolon) this.#emitCodePoint(value);
        else if (isDigit(character) && length < 10 && value < MAX_CODE_POINT)
          this.#openNumber(KIND.decimal, length + 1, value * 10 + character - MARK.zero);
        return;
      case KIND.hex:
        if (character === MARK.semicolon && length > 0) this.#emitCodePoint(value);
        else if (hex >= 0 && length < 10 && value < MAX_CODE_POINT)
          this.#openNumber(KIND.hex, length + 1, value * 16 + hex);
        return;
      case KIND.doubled:
        if (character === value) this.#emit(value);
        return;
      case KIND.caret:
      case KIND.tick: {
        const control = kind === KIND.tick ? (CONTROLS[character] ?? 0) : 0;
        if (control !== 0) this.#emit(control);
        else if (IS_MARK[character] === 1) this.#emit(character);
        else if (character === LF || character === CR) this.#emit(LF);
        return;
      }
      case KIND.tilde:
        if (character === MARK.zero) this.#emit(MARK.tilde);
        else if (character === MARK.one) this.#emit(MARK.slash);
        return;
      case KIND.underscore:
        if (character === MARK.lowerX) this.#open(KIND.underscoreHex, 0, 0);
        return;
      case KIND.underscoreHex:
        if (hex >= 0 && length < 4) this.#open(KIND.underscoreHex, length + 1, value * 16 + hex);
        else if (character === MARK.underscore && length === 4) this.#emitCodePoint(value);
        return;
      case KIND.escape:
        if (character === MARK.openBracket) this.#open(KIND.sequence, 0, 0);
        return;
      case KIND.sequence:
        if (character === MARK.colourEnd || character === MARK.eraseEnd) this.#emit(COLOUR);
        else if (character >= 0x30 && character <= 0x3f) this.#open(KIND.sequence, 0, 0);
        return;
      default:
        this.#advanceQuote(kind, character);
    }
  }

  /** Reads the shell spellings of one apostrophe: `''`, `'\''` or `'"'"'`. */
  #advanceQuote(kind: Kind, character: number): void {
    const isApostrophe = character === MARK.apostrophe;
    if (kind === KIND.quote) {
      if (isApostrophe) this.#emit(MARK.apostrophe);
      else if (character === MARK.backslash) this.#open(KIND.quoteBackslash, 0, 0);
      else if (character === MARK.quote) this.#open(KIND.quoteDouble, 0, 0);
    } else if (kind === KIND.quoteBackslash && isApostrophe) this.#open(KIND.quoteBackslashQuote, 0, 0);
    else if (kind === KIND.quoteBackslashQuote && isApostrophe) this.#emit(MARK.apostrophe);
    else if (kind === KIND.quoteDouble && isApostrophe) this.#open(KIND.quoteDoubleQuote, 0, 0);
    else if (kind === KIND.quoteDoubleQuote && character === MARK.quote) this.#open(KIND.quoteDoubleQuoteDouble, 0, 0);
    else if (kind === KIND.quoteDoubleQuoteDouble && isApostrophe) this.#emit(MARK.apostrophe);
  }

  #afterBackslash(character: number, hex: number): void {
    if (character === MARK.lowerU) this.#open(KIND.unit, 0, 0);
    else if (character === MARK.upperU) this.#open(KIND.unitLong, 0, 0);
    else if (character === MARK.lowerX) this.#open(KIND.byte, 0, 0);
    else if (character === LF) this.#emit(LF);
    else if (character === CR) {
      this.#emit(LF);
      this.#open(KIND.softBreak, 0, 0);
    } else if (IS_MARK[character] === 1 || character >= 0x80) this.#emit(character);
    if (hex >= 0) this.#open(KIND.bareHex, 1, hex);
    if (isDigit(character)) this.#openDigits(1, character - MARK.zero);
    const control = CONTROLS[character] ?? 0;
    if (control !== 0) this.#emit(control);
  }

  /** Reads up to three octal digits, or three decimal ones. */
  #openDigits(length: number, value: number): void {
    if (length < 3) this.#open(KIND.digits, length, value);
    else if (value < 256) this.#emit(value);
    const [high, middle, low] = [Math.floor(value / 100), Math.floor(value / 10) % 10, value % 10];
    const octal = high * 64 + middle * 8 + low;
    if (high < 8 && middle < 8 && low < 8 && octal < 256) this.#emit(octal);
  }

  /** Reads a numeric entity. Browsers also accept a number without its semicolon. */
  #openNumber(kind: Kind, length: number, value: number): void {
    this.#open(kind, length, value);
    this.#emitCodePoint(value);
  }

  #openName(node: number): void {
    if (node === 0) return;
    this.#open(KIND.name, 0, node);
    this.#emitNamed(node);
  }

  #emitNamed(node: number): void {
    const codePoint = characterNamed(node);
    if (codePoint >= 0) this.#emitCodePoint(codePoint);
  }

  /** Emits the value as a byte and as a character, because languages differ. */
  #emitBoth(value: number): void {
    if (value < 256) this.#emit(value);
    if (value >= 0x80) this.#emitCodePoint(value);
  }
}
