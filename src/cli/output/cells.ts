/** Output formats, and the fields of a record on one line. */
import { escapeInvisible } from '../../core/operator-text.ts';
import type { FORMATS } from '../../flags/client-flags.ts';

export type Format = (typeof FORMATS)[number];

export type Printable = { readonly [field: string]: unknown };

export function toText(value: unknown): string {
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The cell of a table: an array as words, and null as a dash. */
export function toCell(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-';
  const isWords = Array.isArray(value) && value.every((item) => typeof item !== 'object');
  return escapeControls(isWords ? value.join(', ') : toText(value));
}

/** Escapes control characters, and all characters that are invisible or look like a blank, as JSON does. */
export function escapeControls(text: string): string {
  const toEscape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return escapeInvisible(text, (character) => character.split('').map(toEscape).join(''));
}

/** Escapes characters that could steer a terminal, and keeps newlines and tabs. */
export function escapeText(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(/[^\n\t]+/g, escapeControls);
}

/** A count with its noun: `1 lease`, `2 leases`. */
export function pluralize(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
