/**
 * The audit log's entries and their canonical bytes. SOURCE: docs/api.md, "The audit log"; docs/formats.md.
 * An entry never holds a value, a token, a session or a signature.
 */
import type { Denial } from '../../core/denials.ts';
import { TIMESTAMP } from '../../core/filter-timestamp.ts';
import * as grammar from '../../core/grammars.ts';
import type { ActorName, EntryId } from '../../core/names.ts';
import { PAGE } from '../../core/page.ts';
import { EVENT_TYPES, type EventType } from '../../core/permissions.ts';
import { byDefault, nullable, optional, type ValueOf } from '../../engine/field.ts';
import { anyText, count, integer, MAX_EXACT, oneOf, positive, text } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';

export const RESULTS = ['allowed', 'denied', 'not_found', 'error'] as const;
export type AuditResult = (typeof RESULTS)[number];

/** The events that create, change or remove resources that several operators may edit at the same time. */
export const CHANGE_EVENTS = {
  policy: ['policy.create', 'policy.replace', 'policy.delete'],
  agent: ['agent.register', 'agent.rotate', 'agent.deregister'],
  credential: ['credential.store', 'credential.delete'],
  operator: [
    'operator.add',
    'operator.replace',
    'operator.rotate',
    'operator.remove',
    'operator.passkey_add',
    'operator.passkey_remove',
  ],
  targets: ['target.put', 'target.delete'],
} as const satisfies Readonly<Record<string, readonly EventType[]>>;
export type ChangedKind = keyof typeof CHANGE_EVENTS;

/** The record of a decision; the ledger adds sequence number, id, time and MAC. */
export interface EntryDraft {
  readonly eventType: EventType;
  readonly agentName: ActorName;
  /**
   * A credential path, `policy:<name>`, `agent:<name>`, `operator:<name>`, `lease:<id>`, `approval:<id>`, or `*` for a
   * list.
   */
  readonly resource: string;
  /** A denial determines the result, the code and the reason of the entry. */
  readonly result: Extract<AuditResult, 'allowed' | 'error'> | Denial;
  readonly policyName: string | null;
  readonly leaseId: string | null;
  /** Null for a denial. */
  readonly reason: string | null;
  readonly requestId: string | null;
  readonly remoteAddr: string | null;
  /** The entry of an intent whose result this one records, with the same id. Missing in any other entry. */
  readonly completes?: EntryId;
  readonly use?: Partial<UseFields>;
}

/** An entry with the given fields. The other fields are null. */
export function draftEntry(
  fields: Pick<EntryDraft, 'eventType' | 'agentName' | 'resource' | 'result'> & Partial<EntryDraft>,
): EntryDraft {
  return { policyName: null, leaseId: null, reason: null, requestId: null, remoteAddr: null, ...fields };
}

export const USE_ENDS = ['complete', 'client', 'upstream', 'revoked', 'expired', 'failed'] as const;
/**
 * How a brokered request ended. `upstream` means that the upstream aborted it; `failed` means that the upstream was not
 * reached, or that the broker ended.
 */
export type UseEnd = (typeof USE_ENDS)[number];

/** The state of a removed row. */
export const REMOVED = 'removed';

const WORD = grammar.matching(/^[a-z_]+$/, [1, 64], 'must be a word of a-z and _');
const EVENT = grammar.matching(/^[a-z_]+\.[a-z_]+$/, [3, 64], 'must be two words separated by a dot');
// A text that may come from a request can contain any character. Code that prints it escapes it.
const BASE = {
  seq: positive({ description: '1, 2, 3 …' }),
  id: text<string>(grammar.id()),
  timestamp: text(grammar.timestamp),
  event_type: text(EVENT, { description: 'Such as `credential.retrieve`.' }),
  agent_name: text<string, undefined>(grammar.actorName, { description: 'An agent, `admin` or `service`.' }),
  resource: anyText({ description: 'A credential path, `policy:<name>`, `agent:<name>`, `lease:<id>` or `*`.' }),
  action: text(WORD),
  result: oneOf<string>(RESULTS, { description: `${RESULTS.map((result) => `\`${result}\``).join(', ')}.` }),
  policy_name: nullable(anyText()),
  lease_id: nullable(text<string>(grammar.id())),
  code: nullable(text(WORD, { description: 'The cause of a denial, such as `no_policy`; `reason` is its text.' })),
  reason: nullable(anyText()),
  request_id: nullable(anyText()),
  remote_addr: nullable(anyText()),
  /** The entry's MAC, which also covers the previous entry's MAC. */
  hmac: text(grammar.hash()),
};

/** The fields of a brokered request. An intent has the first three, a result the others. */
const USE = {
  method: nullable(anyText()),
  host: nullable(anyText()),
  /** The path without the query. */
  target_path: nullable(anyText()),
  status: nullable(integer({ min: 0, max: 999 })),
  /** Bytes of the body that were sent to the upstream. */
  bytes_in: nullable(count()),
  /** Bytes of the body that the caller received. */
  bytes_out: nullable(count()),
  redactions: nullable(count()),
  ended: nullable(oneOf(USE_ENDS)),
};
export type UseFields = ValueOf<typeof USE>;

/** The row that the entry created, changed or removed, and its MAC afterwards. SOURCE: src/core/resources.ts. */
const CHANGE = { subject: nullable(anyText()), state: nullable(text<string>(grammar.or(REMOVED, grammar.hash()))) };

/** The only list of an entry's fields, in the order of the columns. */
export const ENTRY_ROWS = stored({ table: 'audit_entries', key: ['seq'], fields: { ...BASE, ...USE, ...CHANGE } });

export interface AuditEntry
  extends ValueOf<typeof BASE>,
    Partial<ValueOf<typeof USE>>,
    Partial<ValueOf<typeof CHANGE>> {}

export type EntryWithoutMac = Omit<AuditEntry, 'hmac'>;

const keysOf = <Name extends string>(columns: Readonly<Record<Name, unknown>>) => Object.keys(columns) as Name[];
export const ENTRY_FIELDS = keysOf(ENTRY_ROWS.fields);
const COVERED_FIELDS = ENTRY_FIELDS.filter((field) => field !== 'hmac');
export const USE_FIELDS = keysOf(USE);
/** The fields that are null in most entries. */
export const RARE_FIELDS = [...USE_FIELDS, ...keysOf(CHANGE)] as const;

const ENTRY_FORMAT = 'leasehold-audit-v1';

/** Base64 of 32 zero bytes: the previous MAC of the first entry. */
export const GENESIS_MAC = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';

/**
 * The text whose UTF-8 bytes an entry's HMAC covers: every field except `hmac`, with null for a missing one. It is
 * JSON, so that different entries have different texts.
 */
export function canonicalEntry(entry: EntryWithoutMac): string {
  return JSON.stringify([ENTRY_FORMAT, ...COVERED_FIELDS.map((field) => entry[field] ?? null)]);
}

const USE_START = ENTRY_FIELDS.indexOf('method');
const STATE_START = ENTRY_FIELDS.indexOf('subject');

/** The entry from values in the order of the columns. It has the fields of a request, or of a state, if one is set. */
export function toEntry(values: readonly unknown[]): AuditEntry {
  const entry: Record<string, unknown> = {};
  const add = (start: number, end: number): void => {
    for (let at = start; at < end; at += 1) entry[ENTRY_FIELDS[at] ?? ''] = values[at] ?? null;
  };
  const isSet = (start: number, end: number): boolean => values.slice(start, end).some((value) => value !== null);
  add(0, USE_START);
  if (isSet(USE_START, STATE_START)) add(USE_START, STATE_START);
  if (isSet(STATE_START, ENTRY_FIELDS.length)) add(STATE_START, ENTRY_FIELDS.length);
  return entry as unknown as AuditEntry;
}

export const actionOf = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, eventType.slice(eventType.indexOf('.') + 1)]),
) as Readonly<Record<EventType, string>>;

// The head record, which records the end of the audit log. SOURCE: docs/formats.md, "The audit log".

const HEAD_FORMAT = 'leasehold-head-v2';

/** The fields of the head record that its MAC covers. */
export interface HeadFields {
  readonly seq: number;
  readonly hmac: string;
  /** Counts the batches that changed the control state. */
  readonly epoch: number;
  /** The compact range of the Merkle tree, which has `seq` leaves. */
  readonly tree: string;
  /** The digest of the control state. */
  readonly control: string;
}

/** The text whose UTF-8 bytes the head record's MAC covers. */
export function canonicalHead({ seq, hmac, epoch, tree, control }: HeadFields): string {
  return JSON.stringify([HEAD_FORMAT, seq, hmac, epoch, tree, control]);
}

/** The head record as one line of words, with a hyphen for an empty field. */
export function headWords({ seq, hmac, mac, epoch, tree, control }: HeadFields & { readonly mac: string }): string {
  return [seq, hmac, mac, epoch, tree || '-', control || '-'].join(' ');
}

const instant = anyText(
  { description: 'ISO 8601, inclusive; UTC unless it has an offset.' },
  { pattern: TIMESTAMP.source },
);
const MAX_FILTER_LENGTH = 640;
const FILTER = grammar.ofLength([1, MAX_FILTER_LENGTH], `must be 1 to ${MAX_FILTER_LENGTH} characters`);
const filter = text(FILTER);

export const AuditQuery = shape('AuditQuery', {
  agentName: optional(text(grammar.actorName, { wire: 'agent' })),
  resource: optional(text({ ...FILTER, description: 'A glob: `*` matches any characters, `?` matches one.' })),
  action: optional(filter),
  eventType: optional(text(FILTER, { wire: 'event_type' })),
  result: optional(filter),
  since: optional(instant),
  until: optional(instant),
  after: byDefault(
    0,
    integer({ min: 0, max: MAX_EXACT }, { description: 'Only entries with a higher number than this.' }),
  ),
  before: optional(integer({ min: 1, max: MAX_EXACT }, { description: 'Only entries with a lower number than this.' })),
  order: byDefault('desc', oneOf(['asc', 'desc'], { description: 'Newest first by default.' })),
  ...PAGE,
});
const flag = (description: string) => optional(oneOf(['true', 'false'], { description }));
export const VerifyQuery = shape('VerifyQuery', {
  state: flag('Also check every row against the audit log.'),
  values: flag('Also decrypt every value; implies `state`.'),
});
