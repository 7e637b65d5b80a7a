/**
 * The encoded variants of a value as byte patterns without line breaks: raw, base64, hex, and as JSON, URLs, HTML and
 * shells write it. Long ones are divided into pieces that are searched independently; a masker joins adjacent matches.
 */

import { secretParts } from './secret-parts.ts';

/** Shorter values, without line breaks, would mask much of ordinary output. */
const SHORTEST_MASKED_BYTES = 4;
/** Maximum length of a pattern. */
export const LONGEST_PATTERN_BYTES = 127;
const PIECE_BYTES = 64;
const SHORTEST_LINE_BYTES = 8;
/** For larger values only the most likely variants are used, which bounds memory to about 30 bytes for each byte. */
const LARGE_VALUE_BYTES = 32 * 1024;
/** A line break inside a longer match is line wrapping; inside a shorter one it would be a coincidence. */
const SHORTEST_WRAPPED_BYTES = 16;
const PEM_BORDER = /^-----(?:BEGIN|END) [^\r\n]*-----$/;

const CR = 0x0d;
const LF = 0x0a;

export interface SearchPattern {
  /** Without CR and LF. */
  readonly bytes: Uint8Array;
  /** Whether a match may contain line breaks. */
  readonly mayBreak: boolean;
}

const isLongEnough = (text: string): boolean =>
  Buffer.byteLength(text.replaceAll(/[\r\n]/g, '')) >= SHORTEST_MASKED_BYTES;

/** Whether every form is searched: neither too short to be masked, nor so large that only the likely ones are. */
export function isFullyMasked(value: string): boolean {
  return isLongEnough(value.trim()) && Buffer.byteLength(value) <= LARGE_VALUE_BYTES;
}

/** Patterns of the value and of its secret parts; none for a value that is too short to be masked. */
export function patternsOf(value: string): SearchPattern[] {
  const patterns = new Map<string, SearchPattern>();
  // WHY trimmed too: a shell's $( ) and many programs remove the line break at the end.
  const whole = value.toWellFormed();
  const isLarge = Buffer.byteLength(whole) > LARGE_VALUE_BYTES;
  for (const text of new Set([whole, whole.trim(), ...secretParts(whole)])) {
    if (!isLongEnough(text)) continue;
    for (const form of encodedVariants(text, isLarge)) add(patterns, Buffer.from(form), /[\r\n]/.test(text));
    if (!isLarge) for (const form of charsetForms(text)) add(patterns, form, /[\r\n]/.test(text));
    for (const line of linesOf(text)) add(patterns, Buffer.from(line), false);
  }
  return [...patterns.values()];
}

function add(patterns: Map<string, SearchPattern>, form: Buffer, hasBreaks: boolean): void {
  // WHY: a pattern without line breaks also finds text that a terminal, `base64` or a mail wrapped at any column.
  const bytes = form.filter((byte) => byte !== CR && byte !== LF);
  for (let from = 0; from < bytes.length; ) {
    const isLast = bytes.length - from <= LONGEST_PATTERN_BYTES;
    const piece = bytes.subarray(from, isLast ? bytes.length : from + PIECE_BYTES);
    from += piece.length;
    if (piece.length < SHORTEST_MASKED_BYTES) continue;
    const mayBreak = hasBreaks || piece.length >= SHORTEST_WRAPPED_BYTES;
    const key = `${mayBreak} ${Buffer.from(piece).toString('latin1')}`;
    patterns.set(key, { bytes: piece, mayBreak });
  }
}

function linesOf(text: string): string[] {
  if (!/[\r\n]/.test(text)) return [];
  const lines = text.split(/[\r\n]+/).map((line) => line.trim());
  return lines.filter((line) => Buffer.byteLength(line) >= SHORTEST_LINE_BYTES && !PEM_BORDER.test(line));
}

function encodedVariants(text: string, isLarge: boolean): Set<string> {
  const bytes = Buffer.from(text, 'utf8');
  const standard = base64Forms(bytes);
  const likely = [text, JSON.stringify(text).slice(1, -1), ...standard];
  if (isLarge) return new Set(likely);
  const hex = bytes.toString('hex');
  const urlSafe = standard.map((form) => form.replaceAll('+', '-').replaceAll('/', '_'));
  return new Set([
    ...likely,
    ...urlSafe,
    hex,
    hex.toUpperCase(),
    ...jsonForms(text),
    ...urlForms(text),
    ...quotedForms(text),
  ]);
}

/**
 * The three alignments of a value within a longer base64 text. Of digits shared with neighbouring bytes none are
 * included, so up to four bits at either end stay visible.
 */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    const from = Math.ceil((shift * 8) / 6);
    const own = text.slice(from, Math.floor(((shift + bytes.length) * 8) / 6));
    return [own, text.slice(from), text.slice(from).replace(/=+$/, '')];
  });
}

/** UTF-16 in either order, and Latin-1. */
function charsetForms(text: string): Buffer[] {
  const little = Buffer.from(text.replaceAll(/[\r\n]/g, ''), 'utf16le');
  // Both orders contain this, with a zero byte before or after it.
  if (/^[\0-\x7f]*$/.test(text)) return [little.subarray(0, -1)];
  const big = Buffer.from(little).swap16();
  return /^[\0-\xff]*$/.test(text) ? [little, big, Buffer.from(text, 'latin1')] : [little, big];
}

/** JSON strings with the additional escapes of Python, PHP, Go, Gson and .NET, and JSON in JSON. */
function jsonForms(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const ascii = plain.replaceAll(/[\u0080-\uffff]/g, escapeUnit);
  const slashes = plain.replaceAll('/', String.raw`\/`);
  const html = plain.replaceAll(/[<>&]/g, escapeUnit);
  const quoted = plain.replaceAll(String.raw`\"`, String.raw`\u0022`);
  return [
    ...[ascii, slashes, ascii.replaceAll('/', String.raw`\/`), html, html.replaceAll("'", String.raw`\u0027`)],
    plain.replaceAll(/[<>&'=]/g, escapeUnit),
    quoted.replaceAll(/[<>&']/g, escapeUnitUpper),
    quoted.replaceAll(/[<>&'+`]/g, escapeUnitUpper),
    JSON.stringify(plain).slice(1, -1),
  ];
}

function escapeUnitUpper(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Percent-encoding by several conventions, with hex digits in both cases, and once more as a parameter of a URL. */
function urlForms(text: string): string[] {
  const component = encodeURIComponent(text);
  const strict = component.replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const path = strict.replaceAll('%2F', '/');
  const form = new URLSearchParams([['', text]]).toString().slice(1);
  const upper = [component, strict, strict.replaceAll('%20', '+'), path, form, encodeURI(text)];
  const forms = [...upper, ...upper.map((form) => form.replaceAll(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()))];
  return [...forms, ...forms.map((form) => form.replaceAll('%', '%25').replaceAll('+', '%2B'))];
}

/** How libraries escape in HTML, where it differs from the defaults below. */
const HTML_ESCAPES: readonly Readonly<Record<string, string>>[] = [
  {},
  { '"': '&quot;' },
  { '"': '&quot;', "'": '&#39;' },
  { '"': '&quot;', "'": '&#x27;' },
  { '"': '&quot;', "'": '&#039;' },
  // Go, and its templates.
  { '"': '&#34;', "'": '&#39;' },
  { '"': '&#34;', "'": '&#39;', '+': '&#43;' },
  // Underscore, Handlebars, Mustache.
  { '"': '&quot;', "'": '&#x27;', '`': '&#x60;' },
  { '"': '&quot;', "'": '&#x27;', '`': '&#x60;', '=': '&#x3D;' },
  { '"': '&quot;', "'": '&#39;', '`': '&#x60;', '=': '&#x3D;', '/': '&#x2F;' },
  // Numbers for all.
  { '&': '&#38;', '<': '&#60;', '>': '&#62;', '"': '&#34;', "'": '&#39;' },
  { '&': '&#x26;', '<': '&#x3c;', '>': '&#x3e;', '"': '&#x22;', "'": '&#x27;' },
  { '&': '&#x26;', '<': '&#x3C;', '>': '&#x3E;', '"': '&#x22;', "'": '&#x27;' },
];
const HTML_DEFAULTS: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** Quoting of shells, shell traces, inspected objects and HTML. */
function quotedForms(text: string): string[] {
  return [
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll(/[^\w@%+=:,./-]/g, String.raw`\$&`),
    text.replaceAll(/[\\']/g, String.raw`\$&`),
    ...HTML_ESCAPES.map((own) => {
      const escapes = { ...HTML_DEFAULTS, ...own };
      return text.replaceAll(/[&<>"'+`=/]/g, (mark) => escapes[mark] ?? mark);
    }),
  ];
}
