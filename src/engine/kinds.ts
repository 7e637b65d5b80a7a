/**
 * The kinds of single values: how each reads one of a request, writes one of a reply, and what a grant with it covers.
 */
import { ruleBroken } from './errors.ts';
import type { Field, FieldTexts, Form, Grammar, Problems } from './field.ts';
import { readTimestamp, toTimestamp } from './timestamp.ts';

export interface Options<I, W> extends FieldTexts {
  readonly wire?: W;
  readonly example?: I;
}

export function field<V, I, R, W extends string | undefined>(
  form: Form,
  options: Options<I, W>,
  convert: Pick<Field<V, I, R, 'required', W>, 'read' | 'write' | 'restore' | 'covers'>,
): Field<V, I, R, 'required', W> {
  const wire = options.wire as W;
  return {
    byDefault: undefined,
    example: undefined,
    since: 1,
    ...options,
    ...convert,
    isField: true,
    nulls: 'nowhere',
    form,
    presence: 'required',
    wire,
  };
}

export function text<T extends string, const W extends string | undefined = undefined>(
  grammar: Grammar<T>,
  options: Options<string, W> = {},
): Field<T, string, string, 'required', W> {
  return field<T, string, string, W>({ kind: 'text', grammar, limits: {} }, options, {
    read: (given, where, problems) => readText(grammar, given, where, problems),
    write: grammar.format ?? ((value) => value),
    restore: (reply) => (grammar.format === undefined ? (reply as T) : grammar.parse(reply, 'reply')),
    covers: grammar.covers ?? Object.is,
  });
}

/** The lengths and the pattern of a text without a grammar, which its user checks: they are for schemas only. */
interface TextLimits {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly contentEncoding?: 'base64';
}

/** A text without a grammar: one that only the server writes, or that is valid in its context only. */
export function anyText<const W extends string | undefined = undefined>(
  options: Options<string, W> = {},
  limits: TextLimits = {},
): Field<string, string, string, 'required', W> {
  return field<string, string, string, W>({ kind: 'text', grammar: null, limits }, options, {
    read: readString,
    write: (value) => value,
    restore: (reply) => reply,
    covers: Object.is,
  });
}

export function boolean<const W extends string | undefined = undefined>(
  options: Options<boolean, W> = {},
): Field<boolean, boolean, boolean, 'required', W> {
  return field<boolean, boolean, boolean, W>({ kind: 'boolean' }, options, {
    read(given, where, problems) {
      if (typeof given !== 'boolean') problems.push(`${where}: must be a boolean`);
      return typeof given === 'boolean' ? given : undefined;
    },
    write: (value) => value,
    restore: (reply) => reply,
    covers: (outer, inner) => outer || !inner,
  });
}

/** Whether both databases store the text unchanged. */
export function isStorable(given: string): boolean {
  return given.isWellFormed() && !given.includes('\u0000');
}

function readString(given: unknown, where: string, problems: Problems): string | undefined {
  if (typeof given === 'string') return given;
  problems.push(`${where}: must be a string`);
  return undefined;
}

function readText<T extends string>(grammar: Grammar<T>, given: unknown, where: string, problems: Problems) {
  const text = readString(given, where, problems);
  if (text === undefined) return undefined;
  let parsed: T | undefined;
  const problem = ruleBroken(() => {
    parsed = grammar.parse(text, where);
  });
  if (problem !== null) problems.push(problem);
  else if (grammar.pattern !== null && !isStorable(text))
    problems.push(`${where}: must be well-formed Unicode without U+0000`);
  return parsed;
}

export function integer<T extends number = number, const W extends string | undefined = undefined>(
  limits: { readonly min: number; readonly max: number; readonly unit?: 'seconds' },
  options: Options<number, W> = {},
): Field<T, number, number, 'required', W> {
  const { min, max, unit = null } = limits;
  return field<T, number, number, W>({ kind: 'integer', min, max, unit }, options, {
    read(given, where, problems) {
      if (typeof given === 'number' && Number.isInteger(given) && given >= min && given <= max) return given as T;
      problems.push(`${where}: must be a whole number${unit === null ? '' : ` of ${unit}`}, ${min} to ${max}`);
      return undefined;
    },
    write: (value) => value,
    restore: (reply) => reply as T,
    covers: (outer, inner) => inner <= outer,
  });
}

export function oneOf<T extends string, const W extends string | undefined = undefined>(
  words: readonly T[],
  options: Options<T, W> & { readonly noun?: string } = {},
): Field<T, T, T, 'required', W> {
  const { noun = null, ...others } = options;
  return field<T, T, T, W>({ kind: 'choice', words, noun }, others, {
    read: (given, where, problems) => readWord(words, given, where, problems),
    write: (value) => value,
    restore: (reply) => reply,
    covers: Object.is,
  });
}

export function readWord<T extends string>(words: readonly T[], given: unknown, where: string, problems: Problems) {
  const found = words.find((word) => word === given);
  if (found === undefined) problems.push(`${where}: must be one of ${words.join(', ')}`);
  return found;
}

export function time<const W extends string | undefined = undefined>(
  options: Options<string, W> = {},
): Field<number, string, string, 'required', W> {
  return field<number, string, string, W>({ kind: 'time' }, options, {
    read(given, where, problems) {
      const at = readTimestamp(given);
      if (at !== null) return at;
      problems.push(`${where}: must be a time in UTC such as 2026-01-31T09:30:00Z`);
      return undefined;
    },
    write: toTimestamp,
    restore: Date.parse,
    covers: (outer, inner) => inner <= outer,
  });
}

/** An integer of at most 15 digits is exact in JavaScript and JSON. */
export const MAX_EXACT = 999_999_999_999_999;

/** A whole number, 0 or more. */
export function count<const W extends string | undefined = undefined>(
  options: Options<number, W> = {},
): Field<number, number, number, 'required', W> {
  return integer<number, W>({ min: 0, max: Number.MAX_SAFE_INTEGER }, options);
}

/** A whole number, 1 or more. */
export function positive<const W extends string | undefined = undefined>(
  options: Options<number, W> = {},
): Field<number, number, number, 'required', W> {
  return integer<number, W>({ min: 1, max: Number.MAX_SAFE_INTEGER }, options);
}

/** Bytes that only the server writes. */
export function bytes(limits: {
  readonly min: number;
  readonly max: number;
}): Field<Uint8Array, never, never, 'internal', undefined> {
  const unread = (): never => {
    throw new Error('requests and replies contain no bytes');
  };
  const made = field<Uint8Array, never, never, undefined>(
    { kind: 'bytes', ...limits },
    {},
    { read: unread, write: unread, restore: unread, covers: Object.is },
  );
  return { ...made, presence: 'internal' };
}
