/** The schemas of requests and replies, from their declarations. */
import { type TObject, type TProperties, type TSchema, Type } from 'typebox';
import { type AnyField, entriesOf, type Fields, type Form, isInRequests } from '../engine/field.ts';
import { grammarSchema, Nullable, StrictObject, StringEnum, Timestamp } from './fields.ts';

interface Declared {
  readonly name: string;
  readonly fields: Fields;
}

interface DeclaredResource extends Declared {
  readonly key: string;
}

const components = new Map<string, TSchema>();

/** The schemas that the OpenAPI document names: those of the declarations that the routes of the process use. */
export const knownComponents = (): [name: string, schema: TSchema][] => [...components];

function addComponent(name: string, schema: TSchema): void {
  const known = components.get(name);
  // WHY compared: a record with other texts is another schema, and the document would name one of the two.
  if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema))
    throw new Error(`two declarations have the name ${name}`);
  components.set(name, schema);
}

type Side = 'request' | 'replacement' | 'reply';
const made: Readonly<Record<Side, WeakMap<Declared, TObject>>> = {
  request: new WeakMap(),
  replacement: new WeakMap(),
  reply: new WeakMap(),
};

/** WHY kept: a schema is compiled once. */
function once(of: Declared, side: Side, name: string, make: () => TObject): TObject {
  const known = made[side].get(of);
  if (known !== undefined) return known;
  const schema = make();
  made[side].set(of, schema);
  addComponent(name, schema);
  return schema;
}

/** The schema of the request that creates a row. A declaration without a key is itself a request. */
export function draftSchema(of: Declared): TObject {
  const name = 'key' in of ? `${capitalised(of.name)}Request` : of.name;
  return once(of, 'request', name, () => StrictObject(requestProperties(of.fields)));
}

/** The key is in the path, and the body may repeat it. */
export function replacementSchema(of: DeclaredResource): TObject {
  return once(of, 'replacement', `${capitalised(of.name)}Replacement`, () => {
    const repeated = { ...requestProperties(of.fields)[of.key], description: `Must equal the ${of.key} in the path.` };
    return StrictObject({ ...requestProperties(of.fields), [of.key]: Type.Optional(repeated) });
  });
}

export function replySchema(of: Declared): TObject {
  return once(of, 'reply', capitalised(of.name), () => StrictObject(replyProperties(of.fields)));
}

/** The schema of a query, whose parameters the document lists one by one. */
export function querySchema({ fields }: Declared): TObject {
  return StrictObject(requestProperties(fields));
}

/** The schemas of fields of requests, by name. */
export function requestProperties(fields: Fields): TProperties {
  const given = entriesOf(fields).filter(({ field }) => isInRequests(field));
  return Object.fromEntries(
    given.map(({ wire, field }) => {
      const options = { ...boundsOf(field), ...defaultOf(field), ...textsOf(field) };
      const schema = orNull(field, formSchema(field.form, options, 'request'));
      return [wire, field.presence === 'required' ? schema : Type.Optional(schema)];
    }),
  );
}

function replyProperties(fields: Fields): TProperties {
  const shown = entriesOf(fields).filter(({ field }) => field.presence !== 'internal');
  return Object.fromEntries(
    shown.map(({ wire, field }) => {
      const schema = orNull(field, formSchema(field.form, textsOf(field), 'reply'));
      return [wire, field.presence === 'optional' ? Type.Optional(schema) : schema];
    }),
  );
}

function orNull({ nulls }: AnyField, schema: TSchema): TSchema {
  return nulls === 'everywhere' ? Nullable(schema as Parameters<typeof Nullable>[0]) : schema;
}

interface Options {
  readonly description?: string;
  readonly maxLength?: number;
}

function textsOf({ description }: AnyField): Options {
  return description === undefined ? {} : { description };
}

/** WHY only in requests: the server wrote the values of a reply. */
function boundsOf({ form }: AnyField): Options {
  return form.kind === 'time' ? { maxLength: 24 } : {};
}

function defaultOf({ byDefault }: AnyField): Options {
  return typeof byDefault === 'number' ? { description: `${byDefault} by default.` } : {};
}

function formSchema(form: Form, options: Options, side: 'request' | 'reply'): TSchema {
  switch (form.kind) {
    case 'text':
      return form.grammar === null
        ? Type.String({ ...form.limits, ...options })
        : grammarSchema(form.grammar, { ...options });
    case 'boolean':
      return Type.Boolean({ ...options });
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
      const limits = min === 0 && max === null ? {} : { minItems: min, ...(max === null ? {} : { maxItems: max }) };
      return Type.Array(formSchema(form.item, {}, side), { ...limits, ...options });
    }
    case 'record': {
      const least = form.needsOne ? { minProperties: 1 } : {};
      const properties = side === 'request' ? requestProperties(form.fields) : replyProperties(form.fields);
      const schema = Type.Object(properties, { additionalProperties: form.isOpen, ...least, ...options });
      addComponent(form.names[side], schema);
      return schema;
    }
    case 'kinds':
      return kindsSchema(form, options, side);
    case 'map':
      return mapSchema(form, options);
    case 'bytes':
      throw new Error('requests and replies contain no bytes');
  }
}

function mapSchema(form: Form & { kind: 'map' }, options: Options): TSchema {
  const { name, max, maxTextLength, textPattern, maxInteger, title } = form;
  const pattern = textPattern === undefined ? {} : { pattern: textPattern.source };
  const text = Type.String({ maxLength: maxTextLength, ...pattern });
  const value = maxInteger === null ? text : Type.Union([text, Type.Integer({ minimum: 0, maximum: maxInteger })]);
  const rules = { additionalProperties: false, ...(max === null ? {} : { maxProperties: max }), title, ...options };
  const schema = Type.Record(Type.String({ pattern: name.source }), value, rules);
  addComponent(title, schema);
  return schema;
}

/**
 * WHY one object: generated clients handle it better than a union, and the parser names the fields of each kind. A
 * field of several kinds has no pattern, because each kind has its own.
 */
function kindsSchema({ of, title }: Form & { kind: 'kinds' }, options: Options, side: 'request' | 'reply'): TSchema {
  const members: Record<string, TSchema> = {};
  for (const fields of Object.values(of)) {
    const own = side === 'request' ? requestProperties(fields) : replyProperties(fields);
    for (const [name, schema] of Object.entries(own)) {
      const { pattern: _, ...shared }: TSchema & { pattern?: string } = { ...members[name], ...schema };
      members[name] = Type.Optional(name in members ? shared : schema);
    }
  }
  const schema = StrictObject({ kind: StringEnum(Object.keys(of)), ...members }, { title, ...options });
  addComponent(title, schema);
  return schema;
}

const capitalised = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);
