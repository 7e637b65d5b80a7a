/**
 * The audit log's entries and their canonical bytes. SOURCE: docs/api.md, "The audit log"; docs/formats.md.
 * An entry never holds a value, a token, a session or a signature.
 */
import type { Denial } from '../../core/denials.ts';
import type { ActorName, EntryId } from '../../core/names.ts';
import { EVENT_TYPES, type EventType } from '../../core/permissions.ts';

export const RESULTS = ['allowed', 'denied', 'not_found', 'error'] as const;
export type AuditResult = (typeof RESULTS)[number];

/** The events that create, change or remove what several operators may edit at the same time. */
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
  /** The entry of an intent whose result this one records, with the same id. Left out for any other entry. */
  readonly completes?: EntryId;
  readonly use?: Partial<UseFields>;
}

/** An entry whose fields are null, except for those given. */
export function draftEntry(
  fields: Pick<EntryDraft, 'eventType' | 'agentName' | 'resource' | 'result'> & Partial<EntryDraft>,
): EntryDraft {
  return { policyName: null, leaseId: null, reason: null, requestId: null, remoteAddr: null, ...fields };
}

export const USE_ENDS = ['complete', 'client', 'upstream', 'revoked', 'expired', 'failed'] as const;
/** How a use ended. `upstream`: the upstream broke off; `failed`: it was never reached, or the broker ended. */
export type UseEnd = (typeof USE_ENDS)[number];

/** The types of columns. A question mark stands for a value that may be null. */
interface ColumnValues {
  text: string;
  'text?': string | null;
  number: number;
  'number?': number | null;
}

const BASE_COLUMNS = {
  seq: 'number',
  id: 'text',
  /** ISO 8601 in UTC with milliseconds and `Z`. */
  timestamp: 'text',
  event_type: 'text',
  agent_name: 'text',
  resource: 'text',
  action: 'text',
  result: 'text',
  policy_name: 'text?',
  lease_id: 'text?',
  /** The code of a denial, of `src/core/denial-table.ts`. */
  code: 'text?',
  reason: 'text?',
  request_id: 'text?',
  remote_addr: 'text?',
  /** Base64 of the entry's MAC, 32 bytes, which covers the previous entry's MAC too. */
  hmac: 'text',
} as const;

/** The fields of a use. An intent has the first three, a result the others. */
const USE_COLUMNS = {
  method: 'text?',
  host: 'text?',
  /** The path without the query. */
  target_path: 'text?',
  status: 'number?',
  /** Bytes of the body that went to the upstream. */
  bytes_in: 'number?',
  /** Bytes of the body that the caller got. */
  bytes_out: 'number?',
  redactions: 'number?',
  ended: 'text?',
} as const;

/**
 * The row that the entry created, changed or removed, and its MAC afterwards. SOURCE:
 * src/vault/audit/recorded-state.ts.
 */
const STATE_COLUMNS = { subject: 'text?', state: 'text?' } as const;

/** The only list of an entry's fields: the columns of the table in their order. */
export const ENTRY_COLUMNS = { ...BASE_COLUMNS, ...USE_COLUMNS, ...STATE_COLUMNS } as const satisfies Readonly<
  Record<string, keyof ColumnValues>
>;

type Fields<Columns extends Readonly<Record<string, keyof ColumnValues>>> = {
  readonly [Name in keyof Columns]: ColumnValues[Columns[Name]];
};

/** The fields of a use, with the names of the columns. */
export interface UseFields extends Omit<Fields<typeof USE_COLUMNS>, 'ended'> {
  readonly ended: UseEnd | null;
}

export interface AuditEntry
  extends Fields<typeof BASE_COLUMNS>,
    Partial<Fields<typeof USE_COLUMNS>>,
    Partial<Fields<typeof STATE_COLUMNS>> {}

export type EntryWithoutMac = Omit<AuditEntry, 'hmac'>;

const keysOf = <Name extends string>(columns: Readonly<Record<Name, unknown>>) => Object.keys(columns) as Name[];
export const ENTRY_FIELDS = keysOf(ENTRY_COLUMNS);
const COVERED_FIELDS = ENTRY_FIELDS.filter((field) => field !== 'hmac');
export const USE_FIELDS = keysOf(USE_COLUMNS);
export const RARE_FIELDS = [...USE_FIELDS, ...keysOf(STATE_COLUMNS)] as const;

const ENTRY_FORMAT = 'leasehold-audit-v1';

/** Base64 of 32 zero bytes: the previous MAC of the first entry. */
export const GENESIS_MAC = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';

/**
 * The text whose UTF-8 bytes an entry's HMAC covers: every field but `hmac`, and null for one that is missing. JSON, so
 * that different entries differ here too.
 */
export function canonicalEntry(entry: EntryWithoutMac): string {
  return JSON.stringify([ENTRY_FORMAT, ...COVERED_FIELDS.map((field) => entry[field] ?? null)]);
}

const USE_START = ENTRY_FIELDS.indexOf('method');
const STATE_START = ENTRY_FIELDS.indexOf('subject');

/** The entry with the values in the order of the columns. It has the fields of a use, or of a state, if one is set. */
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

// The head record, which says where the audit log ends. SOURCE: docs/formats.md, "The audit log".

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

/** The head record as one line of words; an empty one is a hyphen. */
export function headWords({ seq, hmac, mac, epoch, tree, control }: HeadFields & { readonly mac: string }): string {
  return [seq, hmac, mac, epoch, tree || '-', control || '-'].join(' ');
}
