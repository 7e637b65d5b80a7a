/** Flags for the fields of a resource, except the key and the fields that the server sets. */
import { type AnyField, entriesOf, type Fields, type Form, isInRequests } from '../../engine/field.ts';
import { type Flag, list, parseDuration, text, toDuration } from '../../flags/flag.ts';

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
