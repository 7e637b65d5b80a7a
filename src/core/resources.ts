/**
 * The kinds of rows on which decisions depend, each declared in the file of its noun. They are stored with a MAC. A row
 * with a subject is used only if the newest audit entry with that subject records exactly its MAC, so that replayed and
 * rolled-back rows have no effect. SOURCE: docs/formats.md, "State in the log".
 */
import type { ValueOf } from '../engine/field.ts';
import type { SubjectSpec } from '../engine/resource.ts';
import { Agent } from '../vault/agents/agent.ts';
import { APPROVAL_ROWS } from '../vault/approvals/approval.ts';
import { CREDENTIAL_ROWS } from '../vault/credentials/credential.ts';
import { Operator } from '../vault/operators/operator.ts';
import { Policy } from '../vault/policies/policy.ts';
import { SESSION_ROWS } from '../vault/sessions/session.ts';
import { TARGET_ROWS } from '../vault/use/target.ts';
import { REPLY_ROWS } from './idempotency.ts';

export const RESOURCES = {
  agent: Agent,
  operator: Operator,
  policy: Policy,
  session: SESSION_ROWS,
  credential: CREDENTIAL_ROWS,
  targets: TARGET_ROWS,
  approval: APPROVAL_ROWS,
  /** The reply to a request with an Idempotency-Key. */
  reply: REPLY_ROWS,
} as const;

type Resources = typeof RESOURCES;
export type Resource = keyof Resources;
export type RowOf = { readonly [R in Resource]: ValueOf<Resources[R]['fields']> };

type ResourceWith<T> = { [R in Resource]: Resources[R] extends T ? R : never }[Resource];
/** A resource of which every node holds all rows in memory. */
export type HeldResource = ResourceWith<{ readonly isHeld: true }>;
/** A resource whose rows must match the audit log. */
export type RecordedResource = ResourceWith<{ readonly subject: object }>;

/** The resources whose rows an operation names by their keys. */
export const KEYED_RESOURCES = ['session', 'targets', 'approval', 'reply'] as const satisfies readonly Resource[];
export type KeyedResource = (typeof KEYED_RESOURCES)[number];
export type KeysOf = { readonly [R in KeyedResource]?: RowOf[R][Resources[R]['key'] & keyof RowOf[R]] };

type SubjectField<R extends Resource> = Resources[R] extends {
  readonly subject: { readonly fields: readonly (infer N extends string)[] };
}
  ? N
  : never;
/** The fields that identify a row to remove: its id, its key, and the fields of its subject. */
export type KeyOf = {
  readonly [R in Resource]: Pick<RowOf[R], Extract<keyof RowOf[R], 'id' | Resources[R]['key'] | SubjectField<R>>>;
};

const ALL = Object.keys(RESOURCES) as Resource[];
export const HELD_RESOURCES: readonly HeldResource[] = ALL.filter(isHeld);
export const RECORDED_RESOURCES: readonly RecordedResource[] = ALL.filter(isRecorded);

export function isRecorded(resource: Resource): resource is RecordedResource {
  return 'subject' in RESOURCES[resource];
}

export function isHeld(resource: Resource): resource is HeldResource {
  return 'isHeld' in RESOURCES[resource];
}

export interface RecordedState {
  readonly subject: string;
  readonly state: string;
}

export const KEYSET_SUBJECT = 'keyset';

/** WHY made once: each retrieval needs two subjects. */
const SUBJECT_MAKERS = Object.fromEntries(
  RECORDED_RESOURCES.map((resource) => [resource, subjectMaker(resource, RESOURCES[resource].subject)]),
) as Readonly<Record<RecordedResource, (row: object) => string>>;

/** The beginning of the subjects of a resource, before the values of their fields. */
export function subjectPrefix(resource: RecordedResource): string {
  const { isPrefixed }: SubjectSpec<string> = RESOURCES[resource].subject;
  return isPrefixed === true ? '' : `${resource}:`;
}

function subjectMaker(resource: RecordedResource, spec: SubjectSpec<string>): (row: object) => string {
  const { fields, isCaseless } = spec;
  const prefix = subjectPrefix(resource);
  const [first = '', ...others] = fields;
  return (row) => {
    const values = row as Readonly<Record<string, string | number>>;
    let name = `${prefix}${values[first]}`;
    for (const field of others) name += `:${values[field]}`;
    return isCaseless === true ? name.toLowerCase() : name;
  };
}

export function subjectOf<R extends RecordedResource>(
  resource: R,
  row: { readonly [K in R]: Pick<RowOf[K], SubjectField<K> & keyof RowOf[K]> }[R],
): string {
  return SUBJECT_MAKERS[resource](row);
}

/** The subject of a row in the audit log; null for a resource without one. */
export function recordedSubject(resource: Resource, row: object): string | null {
  return isRecorded(resource) ? SUBJECT_MAKERS[resource](row) : null;
}

/** Whether the newest entry about the row records its MAC. A row without a subject needs no entry. */
export function isAsRecorded<R extends Resource>(
  resource: R,
  row: RowOf[R] & { readonly mac: string },
  states: ReadonlyMap<string, string>,
): boolean {
  const subject = recordedSubject(resource, row);
  return subject === null || states.get(subject) === row.mac;
}

export function isControlSubject(subject: string): boolean {
  return HELD_RESOURCES.some((resource) => subject.startsWith(`${resource}:`)) || subject === KEYSET_SUBJECT;
}
