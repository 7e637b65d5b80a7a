/** The rules of the columns of a resource, from its declaration. They describe what the store writes. */
import { type AnyField, entriesOf, type Fields, type Problems } from '../engine/field.ts';
import { toColumn } from '../engine/resource.ts';
import { JSON_LENGTH, time } from './column-rules.ts';
import { type FieldRule, integer, json, listOf, nullable, objectOf, oneOf, parsed } from './field-rules.ts';

export function columnRules({ fields }: { readonly fields: Fields }): Readonly<Record<string, FieldRule>> {
  return Object.fromEntries(entriesOf(fields).map(({ property, field }) => [toColumn(property), columnRule(field)]));
}

/** The numbers of the migrations that added columns of a resource. */
export function addedColumns({ fields }: { readonly fields: Fields }): Readonly<Record<string, number>> {
  return Object.fromEntries(
    entriesOf(fields).flatMap(({ property, field: { since } }) =>
      since === undefined ? [] : [[toColumn(property), since]],
    ),
  );
}

function columnRule(field: AnyField): FieldRule {
  const isOptional = field.presence === 'optional';
  const rule = isOptional ? nullable(valueRule(field)) : valueRule(field);
  const stored = field.form.kind === 'list' || field.form.kind === 'record' ? json(JSON_LENGTH, rule) : rule;
  return isOptional ? nullable(stored) : stored;
}

/** The rule of a value in memory. */
function valueRule(field: AnyField): FieldRule {
  const { form } = field;
  switch (form.kind) {
    case 'text':
      return parsed((text) => form.grammar.parse(text, 'value'));
    case 'integer':
      return integer(form.min, form.max);
    case 'choice':
      return oneOf(form.words);
    case 'time':
      return time;
    case 'list': {
      const item = valueRule({ ...field, form: form.item });
      const most = form.item.kind === 'choice' ? form.item.words.length : Number.MAX_SAFE_INTEGER;
      return listOf(item, form.min, form.max ?? most);
    }
    case 'record': {
      const members = entriesOf(form.fields).map(({ property, field: member }): [string, FieldRule] => [
        property,
        member.presence === 'optional' ? nullable(valueRule(member)) : valueRule(member),
      ]);
      const shape = objectOf(Object.fromEntries(members));
      return (value) => shape(value) ?? brokenRule(field, value);
    }
  }
}

/** The rule across the fields of a record that its value breaks, without the name of the field. */
function brokenRule(field: AnyField, value: unknown): string | null {
  const problems: Problems = [];
  field.read(field.write(value), 'value', problems);
  const [problem] = problems;
  return problem === undefined ? null : problem.slice(problem.indexOf(': ') + 2);
}
