/**
 * Declarations of requests, replies and resources: the only list of their fields. Table, codec, MAC, schemas, replies,
 * types of the client, flags, inputs and checks of backups follow from a declaration.
 */
import { ApiError } from './errors.ts';
import {
  entriesOf,
  type Fields,
  type InputOf,
  isInRequests,
  isRecord,
  type Problems,
  parseField,
  type ReplyOf,
  readFields,
  restoreFields,
  type ValueOf,
  writeFields,
} from './field.ts';

/** Everything that is wrong: with single fields, or else with fields together. */
interface Rejected {
  readonly problems: Problems;
  readonly isAcrossFields: boolean;
}

type FieldsThatAre<F extends Fields, P extends string> = {
  [K in keyof F]: F[K] extends { readonly presence: P } ? K : never;
}[keyof F];

/** The fields that a request gives. */
export type DraftOf<F extends Fields> = Omit<ValueOf<F>, FieldsThatAre<F, 'set by the server' | 'internal'>>;

/** The fields that a reply shows. */
export type ShownOf<F extends Fields> = Omit<ValueOf<F>, FieldsThatAre<F, 'internal'>>;

/** The rule across fields that a draft breaks, as `field: rule`; null if it breaks none. */
type Check<F extends Fields> = (draft: DraftOf<F>) => string | null;

/** A request, a reply, or both, with the name that the OpenAPI document has for it. */
export interface Shape<F extends Fields> {
  readonly name: string;
  readonly fields: F;
  /** Returns the draft, or everything that is wrong with the fields of a request. */
  read(given: unknown): { readonly draft: DraftOf<F> } | Rejected;
  /** @throws INVALID_REQUEST with the first problem */
  parse(given: unknown): DraftOf<F>;
  toReply(shown: ShownOf<F>): ReplyOf<F>;
}

export function shape<F extends Fields>(name: string, fields: F, check: Check<F> = () => null): Shape<F> {
  const read = (given: unknown): { readonly draft: DraftOf<F> } | Rejected => {
    const problems: Problems = [];
    if (!isRecord(given)) return { problems: ['body: must be a JSON object'], isAcrossFields: false };
    const draft: DraftOf<F> = readFields(fields, given, '', problems);
    if (problems.length > 0) return { problems, isAcrossFields: false };
    const broken = check(draft);
    return broken === null ? { draft } : { problems: [broken], isAcrossFields: true };
  };
  return {
    name,
    fields,
    read,
    parse(given) {
      const found = read(given);
      if ('draft' in found) return found.draft;
      throw new ApiError('INVALID_REQUEST', found.problems[0] ?? '');
    },
    toReply: (shown) => writeFields(fields, shown as ValueOf<F>),
  };
}

/** The subject of a row in the audit log: the resource's name and the values of the fields, joined with colons. */
export interface SubjectSpec<N extends string> {
  readonly fields: readonly N[];
  /** Whether texts that differ only in case are one subject. */
  readonly isCaseless?: true;
  /** Whether the first value begins with the name of the resource and a colon. */
  readonly isPrefixed?: true;
}

/** A table whose rows are declared. */
export interface StoredSpec<F extends Fields, N extends string = keyof F & string> {
  readonly table: string;
  /** The field that names a row, or those that together identify it, in the order of the table. */
  readonly key: N | readonly N[];
  /** The field that identifies a row in the table, if it is not the key. */
  readonly id?: N;
  readonly fields: F;
  /** The subject of a row that must match the audit log. */
  readonly subject?: SubjectSpec<N>;
  /** Whether each node holds all rows in memory. */
  readonly isHeld?: true;
  /** The largest number of rows that a restore accepts; by default any number, or 1,000,000 that are held in memory. */
  readonly maxRows?: number;
}

/** Declares a table that requests do not write as it is. */
export function stored<const F extends Fields, const S extends StoredSpec<F>>(spec: S & { readonly fields: F }): S {
  return spec;
}

export interface ResourceType<F extends Fields, K extends keyof F & string = keyof F & string> extends Shape<F> {
  readonly table: string;
  /** The field that names a row. Requests have it under the same name. */
  readonly key: K;
  /** @throws INVALID_REQUEST */
  parseKey(text: string): ValueOf<F>[K];
  /** The key as requests contain it. */
  formatKey(key: ValueOf<F>[K]): string;
  /** The request that makes the draft, or a row like this one. */
  toInput(draft: DraftOf<F>): InputOf<F>;
  /** Restores the fields of a row that the reply shows. */
  fromReply(reply: ReplyOf<F>): ShownOf<F>;
}

/** Declares a table whose rows requests write, under `key`. */
export function resource<
  const F extends Fields,
  const K extends keyof F & string,
  const S extends Omit<StoredSpec<F>, 'key' | 'fields'>,
>(
  name: string,
  spec: S & { readonly key: K; readonly fields: F; readonly check?: Check<F> },
): ResourceType<F, K> & Omit<S, 'check'> {
  const { fields, check, ...names } = spec;
  const given = entriesOf(fields).filter(({ field }) => isInRequests(field));
  const inRequests: Fields = Object.fromEntries(given.map(({ property, field }) => [property, field]));
  const keyField = given.find(({ wire, field }) => wire === spec.key && field.presence === 'required')?.field;
  if (keyField === undefined) throw new Error(`the key of ${name} must be a required field without another name`);
  const { key, table } = spec;
  return {
    ...(names as Omit<S, 'check'>),
    ...shape(name, fields, check),
    key,
    table,
    parseKey: (text) => parseField(keyField, text, spec.key) as ValueOf<F>[K],
    formatKey: (key) => String(keyField.write(key)),
    toInput: (draft) => writeFields(inRequests, draft as ValueOf<F>) as InputOf<F>,
    fromReply: (reply) => restoreFields(fields, reply as Readonly<Record<string, unknown>>) as ShownOf<F>,
  };
}

/** The name of the column of a property: `maxTtlSeconds` is in `max_ttl_seconds`. */
export function toColumn(property: string): string {
  return property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
