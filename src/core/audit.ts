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
  'auth.verify',
  'session.end',
  'session.read',
  'lease.list',
  'lease.read',
  'lease.renew',
  'lease.revoke',
  'audit.list',
  'audit.verify',
  'audit.export',
  'service.start',
  'service.stop',
] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** What a decision records; the ledger adds sequence number, id, time and MAC. */
export interface EntryDraft {
  readonly eventType: EventType;
  readonly agentName: ActorName;
  /** A credential path, `policy:<name>`, `agent:<name>`, `lease:<id>`, or `*` for a list. */
  readonly resource: string;
  readonly result: AuditResult;
  readonly policyName: string | null;
  readonly leaseId: string | null;
  readonly reason: string | null;
  readonly requestId: string | null;
  readonly remoteAddr: string | null;
  /** The entry of an intent whose result this one records, with the same id. Left out for any other entry. */
  readonly completes?: EntryId;
}

/** An entry as it is stored: the fields have the names of the columns. */
export interface AuditEntry {
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
const HEAD_FORMAT = 'leasehold-head-v1';

/** Base64 of 32 zero bytes: the previous MAC of the first entry. */
export const GENESIS_MAC = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=';

/**
 * The text whose UTF-8 bytes an entry's HMAC covers: every field but `hmac`. JSON, so that different entries differ
 * here too.
 */
export function canonicalEntry(entry: EntryWithoutMac): string {
  return JSON.stringify([
    ENTRY_FORMAT,
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
  ]);
}

/** The text whose UTF-8 bytes the head record's MAC covers. */
export function canonicalHead(seq: number, hmac: string): string {
  return JSON.stringify([HEAD_FORMAT, seq, hmac]);
}

/** Maps each event type to the part after its dot. */
export const actionOf = Object.fromEntries(
  EVENT_TYPES.map((eventType) => [eventType, eventType.slice(eventType.indexOf('.') + 1)]),
) as Readonly<Record<EventType, string>>;
