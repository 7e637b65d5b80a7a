/**
 * The forms in which a value shows up in output, as byte patterns without line breaks: raw, base64, hex, and as JSON, URLs, HTML and
 * shells write it. Long ones are cut into pieces, which are looked for each by itself; a masker joins what touches.
 */

import { secretParts } from './secret-parts.ts';

/** Values with fewer bytes than this, line breaks not counted, would mask half of what is printed. */
const SHORTEST_MASKED_BYTES = 4;
/** Of any pattern, in bytes. */
export const LONGEST_PATTERN_BYTES = 127;
const PIECE_BYTES = 64;
const SHORTEST_LINE_BYTES = 8;
/** Of larger values only the most likely forms are looked for, which bounds memory to some 30 bytes for each of theirs. */
const LARGE_VALUE_BYTES = 32 * 1024;
/** From this length on a line break inside is somebody's wrapping; in shorter ones it would be a coincidence. */
const SHORTEST_WRAPPED_BYTES = 16;
const PEM_BORDER = /^-----(?:BEGIN|END) [^\r\n]*-----$/;

export interface Pattern {
  /** Without CR and LF. */
  readonly bytes: Uint8Array;
  /** Whether it is also meant where line breaks stand inside. */
  readonly mayBreak: boolean;
}

/** Of the value and of its secret parts; none where the value is too short to be masked. */
export function patternsOf(value: string): Pattern[] {
  const patterns = new Map<string, Pattern>();
  // WHY: what a program reads from a file or a shell's $( ) has lost the line break at its end.
  const whole = value.toWellFormed();
  const isLarge = Buffer.byteLength(whole) > LARGE_VALUE_BYTES;
  for (const text of new Set([whole, whole.trim(), ...secretParts(whole)])) {
    if (withoutNewlines(text).length < SHORTEST_MASKED_BYTES) continue;
    for (const form of encodedVariants(text, isLarge)) add(patterns, form, /[\r\n]/.test(text));
    for (const line of linesOf(text)) add(patterns, line, false);
  }
  return [...patterns.values()];
}

function add(patterns: Map<string, Pattern>, form: string, hasBreaks: boolean): void {
  const bytes = withoutNewlines(form);
  for (let from = 0; from < bytes.length; ) {
    const isLast = bytes.length - from <= LONGEST_PATTERN_BYTES;
    const piece = bytes.subarray(from, isLast ? bytes.length : from + PIECE_BYTES);
    from += piece.length;
    if (piece.length < SHORTEST_MASKED_BYTES) continue;
    const mayBreak = hasBreaks || piece.length >= SHORTEST_WRAPPED_BYTES;
    const key = `${mayBreak} ${piece.toString('latin1')}`;
    patterns.set(key, { bytes: piece, mayBreak });
  }
}

/** WHY: without line breaks the same pattern finds what a terminal, `base64` or a mail has wrapped, at whatever column. */
function withoutNewlines(text: string): Buffer {
  return Buffer.from(text.replaceAll(/[\r\n]/g, ''), 'utf8');
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
 * At the three places where a value can begin among the groups of three bytes of a longer text. Of a group that it shares with its
 * neighbours only the digits that are all its own: up to four bits at either end stay visible.
 */
function base64Forms(bytes: Buffer): string[] {
  return [0, 1, 2].flatMap((shift) => {
    const text = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    const from = Math.ceil((shift * 8) / 6);
    const own = text.slice(from, Math.floor(((shift + bytes.length) * 8) / 6));
    return [own, text.slice(from), text.slice(from).replace(/=+$/, '')];
  });
}

/** As JavaScript and most write it, and with what Python, PHP and Go escape besides. */
function jsonForms(text: string): string[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const ascii = plain.replaceAll(/[\u0080-\uffff]/g, escapeUnit);
  const slashes = plain.replaceAll('/', String.raw`\/`);
  const html = plain.replaceAll(/[<>&]/g, escapeUnit);
  return [ascii, slashes, ascii.replaceAll('/', String.raw`\/`), html, html.replaceAll("'", String.raw`\u0027`)];
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Percent-encoded by several tastes of what needs it, with digits in both cases. */
function urlForms(text: string): string[] {
  const component = encodeURIComponent(text);
  const strict = component.replaceAll(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const path = strict.replaceAll('%2F', '/');
  const form = new URLSearchParams([['', text]]).toString().slice(1);
  const upper = [component, strict, strict.replaceAll('%20', '+'), path, form, encodeURI(text)];
  return [...upper, ...upper.map((form) => form.replaceAll(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase()))];
}

/** As shells, their traces, inspected objects and HTML show it. */
function quotedForms(text: string): string[] {
  const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const quoted = html.replaceAll('"', '&quot;');
  return [
    text.replaceAll("'", String.raw`'\''`),
    text.replaceAll(/[^\w@%+=:,./-]/g, String.raw`\$&`),
    text.replaceAll(/[\\']/g, String.raw`\$&`),
    html,
    quoted,
    quoted.replaceAll("'", '&#39;'),
    quoted.replaceAll("'", '&#x27;'),
  ];
}
