/**
 * Reads the fields of a resource from a file or from flags, and reports all unknown, missing and invalid fields
 * together. Durations may have units, such as 15m.
 */
import { nearest } from '../../core/operator-text.ts';
import { entriesOf, type Fields, type Form, isInRequests, isRecord, wireNames } from '../../engine/field.ts';
import type { DraftOf, ResourceType } from '../../engine/resource.ts';
import { parseDuration } from '../../flags/flag.ts';

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
