/**
 * Tables of the ways to write one character, for `spellings.ts`: the names of characters, the bytes that open a
 * spelling, the bytes that may follow, and the meaning of letters and digits in one. Pure data.
 */

// Names of characters in HTML and XML, for all of ASCII and Latin-1. A name is also recognised without its semicolon.
// SOURCE: the HTML standard, "Named character references".

/** Each name is followed by its character. */
const ASCII = [
  'Tab\t NewLine\n excl! quot" QUOT" num# dollar$ percnt% amp& AMP& apos\' lpar( rpar) ast* midast* plus+ comma,',
  'hyphen- dash- period. sol/ colon: semi; lt< LT< equals= gt> GT> quest? commat@ lsqb[ lbrack[ bsol\\ rsqb]',
  'rbrack] Hat^ lowbar_ UnderBar_ grave` DiacriticalGrave` lcub{ lbrace{ verbar| vert| VerticalLine| rcub}',
  'rbrace} tilde~',
].flatMap((line) => line.split(' '));
const LATIN_START = 0xa0;
/** The names in the order of their characters. */
const LATIN = `nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn sup2 sup3 acute
  micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave Aacute Acirc Atilde Auml Aring AElig
  Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash
  Ugrave Uacute Ucirc Uuml Yacute THORN szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute
  ecirc euml igrave iacute icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc
  uuml yacute thorn yuml`;

interface Node {
  /** The character whose name ends here; null if no name does. */
  codePoint: number | null;
  readonly children: Map<number, number>;
}

const nodes: Node[] = [{ codePoint: null, children: new Map() }];

for (const word of ASCII) addName(word.slice(0, -1), word.charCodeAt(word.length - 1));
for (const [at, name] of LATIN.split(/\s+/).entries()) addName(name, LATIN_START + at);

function addName(name: string, codePoint: number): void {
  let at = 0;
  for (const unit of Buffer.from(name)) {
    const next = nodes[at]?.children.get(unit) ?? nodes.push({ codePoint: null, children: new Map() }) - 1;
    nodes[at]?.children.set(unit, next);
    at = next;
  }
  const node = nodes[at];
  if (node !== undefined) node.codePoint = codePoint;
}

/** The node after a character of a name; 0 if no name continues in this way. Node 0 is the start. */
export function nextInName(node: number, unit: number): number {
  return nodes[node]?.children.get(unit) ?? 0;
}

/** The character whose name ends at the node, or -1. */
export function characterNamed(node: number): number {
  return nodes[node]?.codePoint ?? -1;
}

/** How far a spelling was read. It selects the rule of `spellings.ts` that continues it. */
export const KIND = {
  percent: 1,
  percentHex: 2,
  equals: 3,
  equalsHex: 4,
  softBreak: 5,
  backslash: 6,
  unit: 7,
  unitLong: 8,
  byte: 9,
  braced: 10,
  digits: 11,
  bareHex: 12,
  ampersand: 13,
  number: 14,
  decimal: 15,
  hex: 16,
  name: 17,
  doubled: 18,
  caret: 19,
  tick: 20,
  tilde: 21,
  underscore: 22,
  underscoreHex: 23,
  quote: 24,
  quoteBackslash: 25,
  quoteBackslashQuote: 26,
  quoteDouble: 27,
  quoteDoubleQuote: 28,
  quoteDoubleQuoteDouble: 29,
  escape: 30,
  sequence: 31,
} as const;

export type Kind = (typeof KIND)[keyof typeof KIND];

export const LF = 0x0a;
export const CR = 0x0d;
const codeOf = (mark: string): number => mark.charCodeAt(0);
export const MARK = {
  apostrophe: codeOf("'"),
  backslash: codeOf('\\'),
  closeBrace: codeOf('}'),
  colourEnd: codeOf('m'),
  eraseEnd: codeOf('K'),
  hash: codeOf('#'),
  lowerU: codeOf('u'),
  lowerX: codeOf('x'),
  nine: codeOf('9'),
  one: codeOf('1'),
  openBrace: codeOf('{'),
  openBracket: codeOf('['),
  percent: codeOf('%'),
  plus: codeOf('+'),
  quote: codeOf('"'),
  semicolon: codeOf(';'),
  slash: codeOf('/'),
  space: codeOf(' '),
  tilde: codeOf('~'),
  underscore: codeOf('_'),
  upperU: codeOf('U'),
  upperX: codeOf('X'),
  zero: codeOf('0'),
} as const;

/** The kind of spelling that a byte opens; 0 for none. */
export const OPENED = new Uint8Array(256);
/** Marks that are written twice, in SQL, CSV, YAML, ini files, compose files and templates. */
for (const mark of ['"', '$', '{', '}', '#', '@', ']']) OPENED[codeOf(mark)] = KIND.doubled;
for (const [mark, kind] of [
  ['%', KIND.percent],
  ['=', KIND.equals],
  ['\\', KIND.backslash],
  ['&', KIND.ampersand],
  ['^', KIND.caret],
  ['`', KIND.tick],
  ['~', KIND.tilde],
  ['_', KIND.underscore],
  ["'", KIND.quote],
  ['\x1b', KIND.escape],
] as const)
  OPENED[codeOf(mark)] = kind;

/**
 * Spellings whose later characters, other than line breaks, may have another spelling even if the first one has not.
 * WHY not all: no encoder writes the others in this way, and ordinary text would begin many.
 */
export const IS_FREE = new Uint8Array(32);
for (const kind of [KIND.backslash, KIND.unit, KIND.unitLong, KIND.byte, KIND.braced, KIND.digits, KIND.bareHex])
  IS_FREE[kind] = 1;
for (const kind of [KIND.ampersand, KIND.number, KIND.decimal, KIND.hex, KIND.name]) IS_FREE[kind] = 1;
for (let kind: number = KIND.quote; kind <= KIND.quoteDoubleQuoteDouble; kind++) IS_FREE[kind] = 1;

/** The value of a hexadecimal digit, -1 for other bytes. */
export const HEX = new Int8Array(256).fill(-1);
for (const [value, mark] of [...'0123456789abcdef'].entries()) {
  HEX[codeOf(mark)] = value;
  HEX[codeOf(mark.toUpperCase())] = value;
}

/** Letters for control characters after a backslash; 0 for none. */
export const CONTROLS = new Uint8Array(256);
for (const [mark, code] of Object.entries({ n: LF, r: CR, t: 9, b: 8, f: 12, v: 11, a: 7, e: 27 }))
  CONTROLS[codeOf(mark)] = code;

/** Whether a byte is a printable mark of ASCII, and no letter or digit. */
export const IS_MARK = new Uint8Array(256);
for (let code = 0x20; code < 0x7f; code++) if (!/[0-9A-Za-z]/.test(String.fromCharCode(code))) IS_MARK[code] = 1;

/** Characters that typography and HTML use instead of ASCII ones. */
export const TYPOGRAPHIC: ReadonlyMap<number, number> = new Map([
  [0xa0, MARK.space],
  [0x2018, MARK.apostrophe],
  [0x2019, MARK.apostrophe],
  [0x201c, MARK.quote],
  [0x201d, MARK.quote],
]);

/** The mark in `SPECIAL` of bytes that are skipped inside a match, or that may begin something skipped. */
export const PASSED_OVER = 2;
/** Bytes that have several readings inside a match; 0 for the others. */
export const SPECIAL = new Uint8Array(256);
for (let byte = 0; byte < 256; byte++) if (OPENED[byte] !== 0 || byte === MARK.plus) SPECIAL[byte] = 1;
for (const mark of '\0\r\n\x1b\\^`') SPECIAL[codeOf(mark)] = PASSED_OVER;

/** Spellings inside which a line may be wrapped: the spellings of characters, and not a colour sequence. */
export const IS_WRAPPED = new Uint8Array(32);
for (let kind: number = KIND.percent; kind < KIND.escape; kind++) IS_WRAPPED[kind] = 1;

/** Bytes that open a spelling which may be a line break. */
const OPENS_BREAK = new Set(Buffer.from('\\%&=`'));

/** Whether two bytes may begin the spelling of a character that is not skipped. */
function mayOpen(first: number, second: number): boolean {
  const kind = OPENED[first] ?? 0;
  if (kind === 0) return false;
  // WHY not of doubled marks: the mark alone is a character too, so a match can begin there anyway.
  const isWrapped = IS_WRAPPED[kind] === 1 && kind !== KIND.doubled;
  if (second === LF || second === CR) return isWrapped;
  if (isWrapped && OPENS_BREAK.has(second)) return true;
  const isHex = (HEX[second] ?? -1) >= 0;
  const isOpening = OPENED[second] !== 0 && OPENED[second] !== KIND.doubled;
  const mark = String.fromCharCode(second);
  switch (kind) {
    case KIND.percent:
      return isHex || 'uU%'.includes(mark);
    case KIND.equals:
      return isHex;
    case KIND.backslash:
      return isHex || 'uUx'.includes(mark) || IS_MARK[second] === 1 || second >= 0x80;
    case KIND.ampersand:
      return mark === '#' || nextInName(0, second) !== 0 || OPENED[second] !== 0;
    case KIND.tilde:
      return mark === '0' || mark === '1';
    case KIND.underscore:
      return mark === 'x';
    case KIND.quote:
      return mark === '"' || isOpening;
    case KIND.doubled:
      return first === second;
    case KIND.escape:
      return false;
    default:
      return IS_MARK[second] === 1;
  }
}

/** Table of byte pairs: 1 if they may begin the spelling of a character, otherwise 0. */
export const OPEN_PAIRS = new Uint8Array(65_536);
for (let pair = 0; pair < 65_536; pair++) if (mayOpen(pair >> 8, pair & 255)) OPEN_PAIRS[pair] = 1;

/** Pairs whose whole spelling is the second character, unless that character opens another spelling. */
export const PLAIN_PAIRS: readonly number[] = ['^', '`', '\\', '"', '$', '{', '}', '#', '@', ']'].flatMap((first) =>
  Array.from({ length: 128 }, (_, second) => (codeOf(first) << 8) | second).filter((pair) => {
    const kind = OPENED[pair & 255];
    return OPEN_PAIRS[pair] === 1 && IS_MARK[pair & 255] === 1 && (kind === 0 || kind === KIND.doubled);
  }),
);
