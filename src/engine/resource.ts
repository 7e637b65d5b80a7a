/**
 * Declarations of resources: the only list of their fields. Table, codec, MAC, schemas, replies, types of the client,
 * flags, inputs and checks of backups follow from a declaration.
 */
import { ApiError } from './errors.ts';
import {
  entriesOf,
  type Fields,
  type Form,
  type InputOf,
  isRecord,
  type Problems,
  type ReplyOf,
  readFields,
  type ValueOf,
  writeFields,
} from './field.ts';

interface ResourceSpec<F extends Fields> {
  readonly table: string;
  /** The field that names a row. */
  readonly key: keyof F & string;
  readonly fields: F;
  /** The rule across fields that a row breaks, as `field: rule`; null if it breaks none. */
  check?(draft: DraftOf<F>): string | null;
}

type ServerFields<F extends Fields> = {
  [K in keyof F]: F[K] extends { readonly presence: 'set by the server' } ? K : never;
}[keyof F];

/** A row without the fields that the server sets. */
export type DraftOf<F extends Fields> = Omit<ValueOf<F>, ServerFields<F>>;

export interface ResourceType<F extends Fields> extends ResourceSpec<F> {
  readonly name: string;
  /** The draft, or everything that is wrong with the fields of a request. */
  read(given: unknown): { readonly draft: DraftOf<F> } | { readonly problems: Problems };
  /** @throws INVALID_REQUEST with the first problem */
  parse(given: object): DraftOf<F>;
  /** @throws INVALID_REQUEST */
  parseKey(text: string): unknown;
  toReply(row: ValueOf<F>): ReplyOf<F>;
  /** The request that makes the draft. */
  toInput(draft: DraftOf<F>): InputOf<F>;
  /** The row of a reply. WHY without rules: a newer server may have values that this code does not know. */
  fromReply(reply: ReplyOf<F>): ValueOf<F>;
}

export function resource<F extends Fields>(name: string, spec: ResourceSpec<F>): ResourceType<F> {
  const { fields } = spec;
  const keyField = entriesOf(fields).find(({ property }) => property === spec.key);
  const read = (given: unknown): ReturnType<ResourceType<F>['read']> => {
    const problems: Problems = [];
    if (!isRecord(given)) return { problems: ['body: must be a JSON object'] };
    const draft: DraftOf<F> = readFields(fields, given, '', problems);
    if (problems.length > 0) return { problems };
    const broken = spec.check?.(draft) ?? null;
    return broken === null ? { draft } : { problems: [broken] };
  };
  return {
    ...spec,
    name,
    read,
    parse(given) {
      const found = read(given);
      if ('draft' in found) return found.draft;
      throw new ApiError('INVALID_REQUEST', found.problems[0] ?? '');
    },
    parseKey(text) {
      const problems: Problems = [];
      const key = keyField?.field.read(text, spec.key, problems);
      if (problems.length > 0) throw new ApiError('INVALID_REQUEST', problems[0] ?? '');
      return key;
    },
    toReply: (row) => writeFields(fields, row),
    // A request has the fields of a reply except those that the server sets, and a draft does not have them either.
    toInput: (draft) => writeFields(fields, draft as ValueOf<F>) as InputOf<F>,
    fromReply: (reply) => restoreFields(fields, reply as Readonly<Record<string, unknown>>) as ValueOf<F>,
  };
}

/** The name of the column of a property: `maxTtlSeconds` is in `max_ttl_seconds`. */
export function toColumn(property: string): string {
  return property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function restoreFields(fields: Fields, reply: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    entriesOf(fields).map(({ property, wire, field }) => [property, restore(field.form, reply[wire] ?? null)]),
  );
}

function restore(form: Form, value: unknown): unknown {
  if (form.kind === 'time') return typeof value === 'string' ? Date.parse(value) : null;
  return form.kind === 'record' && isRecord(value) ? restoreFields(form.fields, value) : value;
}
