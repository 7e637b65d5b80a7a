/**
 * The audit log's entries and their canonical bytes. SOURCE: docs/api.md, "The audit log"; docs/formats.md.
 * An entry never holds a value, a token, a session or a signature.
 */
import type { ActorName, EntryId } from './names.ts';

export const RESULTS = ['allowed', 'denied', 'not_found', 'error'] as const;
export type AuditResult = (typeof RESULTS)[number];

/**
 * The event types of the routes. A read is recorded only if it was denied, except `credential.retrieve` and
 * `credential.list`.
 */
export const EVENT_TYPES = [
  'credential.retrieve',
  'credential.list',
  'credential.store',
  'credential.delete',
  'credential.use',
  'credential.use_result',
  'credential.misuse',
  'target.put',
  'target.read',
  'target.delete',
  'policy.create',
  'policy.replace',
  'policy.delete',
  'policy.list',
  'policy.read',
  'policy.simulate',
  'agent.register',
  'agent.deregister',
  'agent.list',
  'agent.read',
  'agent.panic',
  'operator.add',
  'operator.break_glass',
  'operator.replace',
  'operator.rotate',
  'operator.remove',
  'operator.invite',
  'operator.passkey_add',
  'operator.passkey_remove',
  'operator.list',
  'operator.read',
  'approval.request',
  'approval.approve',
  'approval.deny',
  'approval.withdraw',
  'approval.timeout',
  'approval.list',
  'approval.read',
  'auth.verify',
  'session.browser',
  'session.end',
  'session.handoff',
  'session.renew',
  'session.read',
  'lease.list',
  'lease.read',
  'lease.renew',
  'lease.use',
  'lease.revoke',
  'exposure.read',
  'audit.list',
  'audit.verify',
  'audit.export',
  'audit.checkpoint',
  'audit.proof',
  'audit.accept_rollback',
  'service.read',
  'service.start',
  'service.stop',
  'service.panic',
  'service.lock',
  'service.unlock',
  'key.slot_list',
  'key.slot_add',
  'key.slot_remove',
  'key.slot_test',
  'key.rotate',
  'key.rotate_root',
  'key.rotate_audit',
  'key.retire',
  'agent.rotate',
  'service.backup',
  'service.backup_result',
  'service.restore',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** What a decision records; the ledger adds sequence number, id, time and MAC. */
export interface EntryDraft {
  readonly eventType: EventType;
  readonly agentName: ActorName;
  /**
   * A credential path, `policy:<name>`, `agent:<name>`, `operator:<name>`, `lease:<id>`, `approval:<id>`, or `*` for a
   * list.
   */
  readonly resource: string;
  readonly result: AuditResult;
  readonly policyName: string | null;
  readonly leaseId: string | null;
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

/** The fields of a use, with the names of the columns. An intent has the first three, a result the others. */
export interface UseFields {
  readonly method: string | null;
  readonly host: string | null;
  /** The path without the query. */
  readonly target_path: string | null;
  readonly status: number | null;
  /** Bytes of the body that went to the upstream. */
  readonly bytes_in: number | null;
  /** Bytes of the body that the caller got. */
  readonly bytes_out: number | null;
  readonly redactions: number | null;
  readonly ended: UseEnd | null;
}

/** The fields in the order of the canonical bytes. */
export const USE_FIELDS = [
  'method',
  'host',
  'target_path',
  'status',
  'bytes_in',
  'bytes_out',
  'redactions',
  'ended',
] as const satisfies readonly (keyof UseFields)[];

/** The row that the entry made, changed or removed, and its MAC from then on. SOURCE: src/core/state.ts. */
export interface StateFields {
  readonly subject: string | null;
  readonly state: string | null;
}

/** An entry as it is stored: the fields have the names of the columns. */
export interface AuditEntry extends Partial<UseFields>, Partial<StateFields> {
  readonly seq: number;
  readonly id: string;
  /** ISO 8601 in UTC with milliseconds and `Z`. */
  readonly timestamp: string;
  readonly event_type: string;
  readonly agent_name: string;
  readonly resource: string;
  readonly action: string;
  readonly result: string;
  readonly policy_name: string | null;
  readonly lease_id: string | null;
  readonly reason: string | null;
  readonly request_id: string | null;
  readonly remote_addr: string | null;
  /** Base64 of the entry's MAC, 32 bytes, which covers the previous entry's MAC too. */
  readonly hmac: string;
}

export type EntryWithoutMac = Omit<AuditEntry, 'hmac'>;

const ENTRY_FORMAT = 'leasehold-audit-v1';
const USE_FORMAT = 'leasehold-audit-v2';
const STATE_FORMAT = 'leasehold-audit-v3';

/** Base64 of 32 zero bytes: the previous MAC of the first entry. */
export const GENESIS_MAC = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';

/**
 * The text whose UTF-8 bytes an entry's HMAC covers: every field but `hmac`. JSON, so that different entries differ
 * here too. The fields of a use are covered if any of them is set, and those of a state together with them. The format
 * differs with the fields, so that a field that is set later is found.
 */
export function canonicalEntry(entry: EntryWithoutMac): string {
  const isState = hasState(entry);
  const isUse = isState || hasUse(entry);
  return JSON.stringify([
    isState ? STATE_FORMAT : isUse ? USE_FORMAT : ENTRY_FORMAT,
    entry.seq,
    entry.id,
    entry.timestamp,
    entry.event_type,
    entry.agent_name,
    entry.resource,
    entry.action,
    entry.result,
    entry.policy_name,
    entry.lease_id,
    entry.reason,
    entry.request_id,
    entry.remote_addr,
    ...(isUse ? USE_FIELDS.map((field) => entry[field] ?? null) : []),
    ...(isState ? [entry.subject ?? null, entry.state ?? null] : []),
  ]);
}

/** Whether a field of a state is set; the service sets both or none. */
export function hasState({ subject, state }: Partial<StateFields>): boolean {
  return !(subject == null && state == null);
}

/** Whether any field of a use is set. */
export function hasUse({
  method,
  host,
  target_path,
  status,
  bytes_in,
  bytes_out,
  redactions,
  ended,
}: Partial<UseFields>) {
  return !(
    method == null &&
    host == null &&
    target_path == null &&
    status == null &&
    bytes_in == null &&
    bytes_out == null &&
    redactions == null &&
    ended == null
  );
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
