/**
 * The fields of a resource from a file or from flags. All unknown, missing and invalid fields are reported together.
 * Durations may have units, such as 15m.
 */
import { nearest } from '../core/operator-text.ts';
import {
  type AnyField,
  entriesOf,
  type Fields,
  type Form,
  isInRequests,
  isRecord,
  wireNames,
} from '../engine/field.ts';
import type { DraftOf, ResourceType } from '../engine/resource.ts';
import { type Flag, list, parseDuration, text, toDuration } from '../flags/flag.ts';

const SHOWN_NAME = /^[\w.-]{1,40}$/;

export const DURATION_RULE = 'must be a whole number of seconds, or a duration such as 15m';

type Read<F extends Fields> = { readonly draft: DraftOf<F> } | { readonly problems: readonly string[] };

/** `key` names the row; the field of the key may repeat it. */
export function readResource<F extends Fields>(of: ResourceType<F>, value: unknown, key: string): Read<F> {
  const names = wireNames(of.fields);
  if (!isRecord(value)) return { problems: [`must contain the fields of a ${of.name}: ${names.join(', ')}`] };
  const { [of.key]: given = key, ...others } = value;
  const repeats = given === key ? [] : [`${of.key}: must be ${key}, the name of the file, or omitted`];
  const { input, problems } = prepared(of.fields, others, '');
  const read = of.read({ ...input, [of.key]: key });
  const known = new Set(problems.map(whereOf));
  const found = 'problems' in read ? read.problems.filter((problem) => !known.has(whereOf(problem))) : [];
  const all = [...repeats, ...problems, ...found.map((problem) => withHint(of.fields, problem, others))];
  return all.length === 0 && 'draft' in read ? read : { problems: all };
}

const whereOf = (problem: string): string => problem.slice(0, problem.indexOf(': '));

/** The fields, with durations in seconds. An unknown field and an invalid duration are problems. */
function prepared(fields: Fields, given: Readonly<Record<string, unknown>>, prefix: string) {
  const input: Record<string, unknown> = {};
  const problems: string[] = [];
  const known = new Map(entriesOf(fields).map(({ wire, field }) => [wire, field]));
  for (const [name, value] of Object.entries(given)) {
    const field = known.get(name);
    if (field === undefined) problems.push(unknownField(name, wireNames(fields), prefix));
    // A field that the server sets is skipped, so that the output of `show` is a valid file.
    if (field === undefined || !isInRequests(field)) continue;
    const { form } = field;
    if (form.kind === 'record' && isRecord(value)) {
      const inner = prepared(form.fields, value, `${prefix}${name}.`);
      problems.push(...inner.problems);
      // Unknown fields would hide violations of the record's other rules.
      if (inner.problems.length === 0) input[name] = inner.input;
    } else if (isDuration(form) && typeof value !== 'number') {
      const seconds = typeof value === 'string' && /[a-z]$/.test(value) ? parseDuration(value) : null;
      if (seconds === null) problems.push(`${prefix}${name}: ${DURATION_RULE}`);
      else input[name] = seconds;
    } else input[name] = value;
  }
  return { input, problems };
}

const isDuration = (form: Form): boolean => form.kind === 'integer' && form.unit === 'seconds';

function unknownField(name: string, known: readonly string[], prefix: string): string {
  const meant = nearest(name.toLowerCase(), known);
  const hint = meant === null ? `must be one of ${known.join(', ')}` : `did you mean ${meant}?`;
  return `${prefix}${SHOWN_NAME.test(name) ? name : 'a field'}: unknown field; ${hint}`;
}

/** Adds the nearest allowed word to a problem with a field that allows only certain words. */
function withHint(fields: Fields, problem: string, given: Readonly<Record<string, unknown>>): string {
  const [name = '', ...path] = whereOf(problem)
    .split(/[.[\]]+/)
    .filter((part) => part !== '');
  let form: Form | undefined = entriesOf(fields).find(({ wire }) => wire === name)?.field.form;
  let value = given[name];
  for (const part of path) {
    if (form?.kind === 'list') form = form.item;
    else if (form?.kind === 'record') form = entriesOf(form.fields).find(({ wire }) => wire === part)?.field.form;
    value =
      typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>)[part] : undefined;
  }
  if (form?.kind !== 'choice' || typeof value !== 'string' || form.words.includes(value)) return problem;
  const meant = nearest(value.toLowerCase(), form.words);
  return meant === null ? problem : `${problem}; did you mean ${meant}?`;
}

interface FieldFlag {
  /** The field name as messages show it, such as `limits.concurrent`. */
  readonly where: string;
  readonly record: string | null;
  readonly wire: string;
  readonly flag: string;
  readonly field: AnyField;
}

interface Declared {
  readonly fields: Fields;
  readonly key: string;
}

type Given = Readonly<Record<string, string | null | readonly string[]>>;

function fieldFlags(fields: Fields, key: string, record: string | null = null): FieldFlag[] {
  return entriesOf(fields).flatMap(({ property, wire, field }) => {
    if (property === key || !isInRequests(field)) return [];
    if (field.form.kind === 'record') return fieldFlags(field.form.fields, '', wire);
    const flag = field.flag ?? wire.replaceAll('_', '-');
    return [{ where: record === null ? wire : `${record}.${wire}`, record, wire, flag, field }];
  });
}

/**
 * Declares a flag for each field. A field with several values has a repeatable flag, whose values may also be separated
 * by commas.
 */
export function flagsOf({ fields, key }: Declared): Readonly<Record<string, Flag<Given[string]>>> {
  return Object.fromEntries(
    fieldFlags(fields, key).map(({ flag, field }) => {
      const { placeholder = 'TEXT' } = field;
      const help = `${field.help ?? ''}${defaultOf(field)}`;
      return [flag, field.form.kind === 'list' ? list(placeholder, help) : text(placeholder, help)];
    }),
  );
}

function defaultOf({ form, byDefault }: AnyField): string {
  if (byDefault === undefined) return '';
  return ` (default ${form.kind === 'integer' && form.unit === 'seconds' ? toDuration(Number(byDefault)) : byDefault})`;
}

/** The fields in the form of a file; empty if no flag is given. */
export function fieldsFrom({ fields, key }: Declared, given: Given): Readonly<Record<string, unknown>> {
  const input: Record<string, unknown> = {};
  for (const { record, wire, flag, field } of fieldFlags(fields, key)) {
    const value = inputOf(field.form, given[flag] ?? null);
    if (value === undefined) continue;
    if (record === null) input[wire] = value;
    else input[record] = { ...(input[record] ?? {}), [wire]: value };
  }
  return input;
}

function inputOf(form: Form, given: Given[string]): unknown {
  if (given === null) return undefined;
  if (typeof given !== 'string') return given.length === 0 ? undefined : given.flatMap((each) => each.split(','));
  if (form.kind !== 'integer') return given;
  if (form.unit === 'seconds') return parseDuration(given) ?? given;
  return /^\d+$/.test(given) ? Number(given) : Number.NaN;
}

/** The flag of the field that a problem names, such as `--max-ttl`; null for the key. */
export function flagOf({ fields, key }: Declared, where: string): string | null {
  const all = fieldFlags(fields, key);
  const found = all.find((each) => each.where === where) ?? all.find(({ record }) => record === where);
  return found === undefined ? null : `--${found.flag}`;
}
