/** The schemas of the requests and replies of resources, from their declarations. */
import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { type AnyField, entriesOf, type Fields, type Form } from '../engine/field.ts';
import { StrictObject, StringEnum, Timestamp } from './fields.ts';

interface Declared {
  readonly name: string;
  readonly key: string;
  readonly fields: Fields;
}

interface Schemas {
  readonly draft: TObject;
  readonly replacement: TObject;
  readonly reply: TObject;
  readonly key: TSchema;
}

const known = new Map<Fields, Schemas>();

/** WHY cached: a schema is compiled once. */
function schemasOf({ name, key: keyName, fields }: Declared): Schemas {
  const made = known.get(fields);
  if (made !== undefined) return made;
  const properties = requestProperties(fields);
  const key = properties[keyName];
  if (key === undefined) throw new Error(`requests for a ${name} have no ${keyName}`);
  const repeated = { ...key, description: `Must equal the ${keyName} in the path.` };
  const schemas = {
    draft: StrictObject(properties),
    replacement: StrictObject({ ...properties, [keyName]: Type.Optional(repeated) }),
    reply: StrictObject(replyProperties(fields)),
    key,
  };
  known.set(fields, schemas);
  return schemas;
}

export const draftSchema = (of: Declared): TObject => schemasOf(of).draft;
/** The key is in the path, and the body may repeat it. */
export const replacementSchema = (of: Declared): TObject => schemasOf(of).replacement;
export const replySchema = (of: Declared): TObject => schemasOf(of).reply;
export const keySchema = (of: Declared): TSchema => schemasOf(of).key;

/** The schemas of the resource, and of the records in it, that the OpenAPI document names. */
export function componentsOf(of: Declared): [name: string, schema: TSchema][] {
  const name = capitalised(of.name);
  const { draft, replacement, reply } = schemasOf(of);
  const records = entriesOf(of.fields).flatMap(({ wire, field: { form } }): [string, TSchema][] => {
    if (form.kind !== 'record') return [];
    const [given, shown] = [draft.properties[wire] ?? Type.Null(), reply.properties[wire] ?? Type.Null()];
    const isSame = JSON.stringify(given) === JSON.stringify(shown);
    return isSame
      ? [[form.title, given]]
      : [
          [`${form.title}Fields`, given],
          [`${name}${form.title}`, shown],
        ];
  });
  return [...records, [`${name}Request`, draft], [`${name}Replacement`, replacement], [name, reply]];
}

function requestProperties(fields: Fields): TProperties {
  const given = entriesOf(fields).filter(({ field }) => field.presence !== 'set by the server');
  return Object.fromEntries(
    given.map(({ wire, field }) => {
      const options = { ...boundsOf(field), ...defaultOf(field), ...textsOf(field) };
      const schema = formSchema(field.form, options, requestProperties);
      return [wire, field.presence === 'required' ? schema : Type.Optional(schema)];
    }),
  );
}

function replyProperties(fields: Fields): TProperties {
  return Object.fromEntries(
    entriesOf(fields).map(({ wire, field }) => {
      const schema = formSchema(field.form, textsOf(field), replyProperties);
      return [wire, field.presence === 'optional' ? Type.Optional(schema) : schema];
    }),
  );
}

interface Options {
  readonly description?: string;
  readonly maxLength?: number;
}

function textsOf({ description }: AnyField): Options {
  return description === undefined ? {} : { description };
}

/** WHY only of requests: a reply has what the server wrote. */
function boundsOf({ form }: AnyField): Options {
  return form.kind === 'time' ? { maxLength: 24 } : {};
}

function defaultOf({ byDefault }: AnyField): Options {
  return typeof byDefault === 'number' ? { description: `${byDefault} by default.` } : {};
}

function formSchema(form: Form, options: Options, propertiesOf: (fields: Fields) => TProperties): TSchema {
  switch (form.kind) {
    case 'text': {
      const { pattern, minLength, maxLength, description, noun } = form.grammar;
      const title = noun === undefined ? {} : { title: capitalised(noun) };
      const described = description === undefined ? {} : { description };
      return Type.String({
        minLength,
        maxLength,
        pattern: pattern.source.replaceAll('\\/', '/'),
        ...title,
        ...described,
        ...options,
      });
    }
    case 'integer': {
      const title = form.unit === null ? {} : { title: capitalised(form.unit) };
      return Type.Integer({ minimum: form.min, maximum: form.max, ...title, ...options });
    }
    case 'choice':
      return StringEnum([...form.words], {
        ...(form.noun === null ? {} : { title: capitalised(form.noun) }),
        ...options,
      });
    case 'time':
      return Type.String({ ...Timestamp, ...options });
    case 'list': {
      const { min, max } = form;
      const limits = { minItems: min, ...(max === null ? {} : { maxItems: max }) };
      return Type.Array(formSchema(form.item, {}, propertiesOf), { ...limits, ...options });
    }
    case 'record': {
      const least = form.needsOne ? { minProperties: 1 } : {};
      return StrictObject(propertiesOf(form.fields), { title: form.title, ...least, ...options });
    }
  }
}

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
