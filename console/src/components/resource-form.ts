/**
 * The fields of a form for a resource as text, and the problems that the rules of the server find in them. Each field
 * is checked separately, so that one problem does not hide another.
 */

import { nounOf } from '../../../src/engine/compounds.ts';
import { type AnyField, entriesOf, type Fields, isInRequests, isRecord } from '../../../src/engine/field.ts';
import type { DraftOf, ResourceType } from '../../../src/engine/resource.ts';

/** The texts of the inputs, by the field name in messages, such as `limits.concurrent`. Checkboxes have a list. */
export type FormFields = Readonly<Record<string, string | readonly string[]>>;

export interface FormField {
  readonly name: string;
  /** The field of the request that is or contains this field. Problems are reported under this name. */
  readonly part: string;
  readonly field: AnyField;
  /** Whether an empty input omits the field. */
  readonly mayBeEmpty: boolean;
  /** The input whose choice decides whether the record of this field is given; null for none. */
  readonly givenBy: string | null;
}

export interface Checked<F extends Fields> {
  /** Null while a problem exists. */
  readonly draft: DraftOf<F> | null;
  readonly problems: Readonly<Record<string, string>>;
  /** The rule that valid fields break together; null if they break none. */
  readonly acrossFields: string | null;
}

export function formFields(fields: Fields): FormField[] {
  return entriesOf(fields).flatMap(({ wire, field }): FormField[] => {
    if (!isInRequests(field)) return [];
    const mayBeEmpty = field.presence === 'optional';
    if (field.form.kind !== 'record') return [{ name: wire, part: wire, field, mayBeEmpty, givenBy: null }];
    const members = entriesOf(field.form.fields);
    const decider = members.find((member) => member.field.presence === 'required');
    return members.map((member) => ({
      name: `${wire}.${member.wire}`,
      part: wire,
      field: member.field,
      mayBeEmpty: mayBeEmpty && (decider === undefined || decider === member),
      givenBy: decider === undefined || decider === member ? null : `${wire}.${decider.wire}`,
    }));
  });
}

/** The texts of a form for a new row. */
export function emptyFields(fields: Fields): FormFields {
  return Object.fromEntries(
    formFields(fields).map(({ name, field }) => [name, isChoices(field) ? [] : String(field.byDefault ?? '')]),
  );
}

export function toFormFields<F extends Fields>(of: ResourceType<F>, draft: DraftOf<F>): FormFields {
  const input = of.toInput(draft) as Readonly<Record<string, unknown>>;
  const given = Object.entries(input).flatMap(([name, value]): [string, unknown][] =>
    isRecord(value) ? Object.entries(value).map(([inner, each]) => [`${name}.${inner}`, each]) : [[name, value]],
  );
  const texts = given.map(([name, value]): [string, string | string[]] => {
    const field = formFields(of.fields).find((each) => each.name === name)?.field;
    if (!Array.isArray(value)) return [name, String(value)];
    return [name, field !== undefined && isChoices(field) ? value.map(String) : value.join('\n')];
  });
  return { ...emptyFields(of.fields), ...Object.fromEntries(texts) };
}

function isChoices({ form }: AnyField): boolean {
  return form.kind === 'list' && form.item.kind === 'choice';
}

export function check<F extends Fields>(of: ResourceType<F>, fields: FormFields): Checked<F> {
  const read = of.read(toInput(of.fields, fields));
  if ('draft' in read) return { draft: read.draft, problems: {}, acrossFields: null };
  if (read.isAcrossFields) return { draft: null, problems: {}, acrossFields: read.problems[0] ?? null };
  const problems: Record<string, string> = {};
  for (const problem of read.problems) {
    const [, part = '', index, rule = problem] = /^([^.:[]+)(?:\[(\d+)\])?[^:]*: (.*)$/s.exec(problem) ?? [];
    const form = formFields(of.fields).find(({ name }) => name === part);
    problems[part] ??=
      index !== undefined ? `line ${Number(index) + 1}: ${rule}` : (emptyRule(form, fields) ?? problem);
  }
  return { draft: null, problems, acrossFields: null };
}

function emptyRule(form: FormField | undefined, fields: FormFields): string | null {
  if (form?.field.form.kind !== 'list' || [fields[form.name] ?? ''].flat().join('').trim() !== '') return null;
  if (isChoices(form.field)) return `${form.name}: choose one or more`;
  return `${form.name}: must have one or more ${nounOf(form.field.form.item)}s, one on each line`;
}

function toInput(all: Fields, fields: FormFields): Readonly<Record<string, unknown>> {
  const input: Record<string, unknown> = {};
  for (const { name, part, field, mayBeEmpty, givenBy } of formFields(all)) {
    const text = fields[name] ?? '';
    const isLeftOut = (mayBeEmpty && String(text).trim() === '') || (givenBy !== null && fields[givenBy] === '');
    if (isLeftOut) continue;
    const value = valueIn(field, text);
    if (name === part) input[part] = value;
    else input[part] = { ...(input[part] ?? {}), [name.slice(part.length + 1)]: value };
  }
  return input;
}

function valueIn({ form }: AnyField, given: string | readonly string[]): unknown {
  if (form.kind === 'list' && form.item.kind === 'choice')
    return form.item.words.filter((word) => given.includes(word));
  const text = String(given).trim();
  if (form.kind === 'list') {
    return text === '' ? [] : text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]));
  }
  // The rule for integers rejects NaN with the name of the field.
  return form.kind === 'integer' ? (/^\d+$/.test(text) ? Number(text) : Number.NaN) : text;
}
