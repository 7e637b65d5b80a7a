/**
 * The tables of a backup, in their order, with the rule of each column. Nothing of a backup is written anywhere before
 * it has passed these rules. A test compares the tables with those of the stores.
 */
import { APPROVAL_STATUSES, MAX_NONCE_LENGTH } from '../core/approval.ts';
import { RESULTS, USE_ENDS } from '../core/audit.ts';
import { MAX_VALUE_BYTES } from '../core/credential.ts';
import { MAX_PASSKEYS, ROLES } from '../core/operator.ts';
import { MAX_TARGETS } from '../core/target.ts';
import { APPROVED_ACTIONS, MAX_QUORUM } from '../vault/policies/approval-rule.ts';
import { Policy } from '../vault/policies/policy.ts';
import {
  actorName,
  agentName,
  approvalTerms,
  bytes32,
  count,
  credentialType,
  description,
  EVENT,
  empty,
  holderId,
  identity,
  JSON_LENGTH,
  keyset,
  leaseKind,
  leasePolicy,
  logText,
  mac,
  number,
  operatorName,
  passkey,
  path,
  placement,
  sealedRoot,
  slotKind,
  slotName,
  slotParameters,
  target,
  time,
  uuid,
  WORD,
} from './column-rules.ts';
import {
  anyText,
  base64,
  either,
  equalTo,
  type FieldRule,
  integer,
  isoTime,
  json,
  listOf,
  matching,
  nestedWithin,
  nullable,
  objectOf,
  oneOf,
} from './field-rules.ts';
import { addedColumns, columnRules } from './resource-rules.ts';

export interface TableRules {
  /** Names of the columns of the key, in which the rows ascend. */
  readonly key: readonly string[];
  readonly columns: Readonly<Record<string, FieldRule>>;
  /** The numbers of the migrations that added columns, which backups of earlier ones do not have. */
  readonly since?: Readonly<Record<string, number>>;
  /** Far above any vault, or the number that is possible. */
  readonly maxRows: number;
  /** A column that no two rows have in common, whatever its case. */
  readonly unique?: string;
}

/** Rows whose ids a restore holds in memory. */
const MAX_CREDENTIALS = 10_000_000;
const UNBOUNDED = Number.MAX_SAFE_INTEGER;
/** Rows that the server holds in memory. */
const MAX_HELD_ROWS = 1_000_000;
const MAX_SLOTS = 1000;
/** More are added to a number of exposures, which must stay a safe integer. */
const MAX_TIMES = 2 ** 50;

/** The order is that in which the tables follow. */
export const ROW_RULES: Readonly<Record<string, TableRules>> = {
  audit_entries: {
    key: ['seq'],
    maxRows: UNBOUNDED,
    columns: {
      seq: number,
      id: uuid,
      timestamp: isoTime,
      event_type: matching(EVENT, 64, 'must be two words separated by a dot'),
      agent_name: actorName,
      resource: logText,
      action: matching(/^[a-z_]+$/, 64, WORD),
      result: oneOf(RESULTS),
      policy_name: nullable(logText),
      lease_id: nullable(uuid),
      reason: nullable(logText),
      request_id: nullable(logText),
      remote_addr: nullable(logText),
      hmac: mac,
      method: nullable(logText),
      host: nullable(logText),
      target_path: nullable(logText),
      status: nullable(integer(0, 999)),
      bytes_in: nullable(count),
      bytes_out: nullable(count),
      redactions: nullable(count),
      ended: nullable(oneOf(USE_ENDS)),
      subject: nullable(logText),
      state: nullable(either(equalTo('removed'), mac)),
    },
  },
  audit_tree: {
    key: ['level', 'position'],
    maxRows: UNBOUNDED,
    columns: { level: integer(1, 64), position: count, hash: bytes32 },
  },
  checkpoints: {
    key: ['generation', 'size'],
    maxRows: UNBOUNDED,
    columns: { generation: number, size: count, signed_at: time, note: anyText(65_536) },
  },
  agents: {
    key: ['id'],
    unique: 'name',
    maxRows: MAX_HELD_ROWS,
    columns: {
      id: uuid,
      name: agentName,
      description,
      public_key: bytes32,
      registered_at: time,
      sessions_ended_at: nullable(time),
      former_public_key: nullable(bytes32),
      former_key_until: nullable(time),
      registered_by: json(JSON_LENGTH, listOf(actorName, 0, MAX_HELD_ROWS)),
      mac,
    },
  },
  operators: {
    key: ['id'],
    unique: 'name',
    maxRows: MAX_HELD_ROWS,
    columns: {
      id: uuid,
      name: operatorName,
      description,
      roles: json(JSON_LENGTH, listOf(oneOf(ROLES), 1, ROLES.length)),
      public_key: nullable(bytes32),
      passkeys: nullable(json(JSON_LENGTH, nullable(listOf(passkey, 1, MAX_PASSKEYS)))),
      identity: nullable(json(JSON_LENGTH, nullable(identity))),
      added_at: time,
      sessions_ended_at: nullable(time),
      mac,
    },
  },
  policies: {
    key: ['name'],
    maxRows: MAX_HELD_ROWS,
    columns: {
      ...columnRules(Policy),
      mac,
    },
    since: addedColumns(Policy),
  },
  sessions: {
    key: ['token_hash'],
    maxRows: UNBOUNDED,
    columns: {
      token_hash: bytes32,
      agent_id: uuid,
      issued_at: time,
      expires_at: time,
      ends_at: nullable(time),
      mac,
    },
  },
  spent_challenges: { key: ['id'], maxRows: UNBOUNDED, columns: { id: uuid, expires_at: time } },
  idempotency_records: {
    key: ['id'],
    maxRows: UNBOUNDED,
    columns: {
      id: mac,
      agent_id: holderId,
      request_mac: mac,
      reply: json(JSON_LENGTH, nestedWithin(64)),
      expires_at: time,
      mac,
    },
  },
  credentials: {
    key: ['path'],
    maxRows: MAX_CREDENTIALS,
    columns: {
      id: uuid,
      path,
      type: credentialType,
      description,
      created_at: time,
      updated_at: time,
      version: number,
      mac,
    },
  },
  credential_versions: {
    key: ['credential_id', 'version'],
    maxRows: UNBOUNDED,
    columns: {
      credential_id: uuid,
      version: number,
      type: credentialType,
      created_at: time,
      sealed: base64(1, MAX_VALUE_BYTES + 1024),
    },
  },
  access_counts: { key: ['credential_id'], maxRows: UNBOUNDED, columns: { credential_id: uuid, count } },
  leases: {
    key: ['seq'],
    maxRows: UNBOUNDED,
    columns: {
      seq: number,
      id: uuid,
      kind: leaseKind,
      agent_id: holderId,
      credential_id: uuid,
      agent_name: actorName,
      path,
      version: number,
      policy_name: leasePolicy,
      issued_at: time,
      expires_at: time,
      revoked_at: nullable(time),
      token_hash: nullable(bytes32),
    },
  },
  usages: {
    key: ['path'],
    maxRows: UNBOUNDED,
    columns: {
      credential_id: uuid,
      path,
      service: nullable(matching(/^[a-z0-9-]{1,64}$/, 64, 'must be the name of a service')),
      targets: json(JSON_LENGTH, listOf(target, 1, MAX_TARGETS)),
      placement: json(JSON_LENGTH, placement),
      updated_at: time,
      mac,
    },
  },
  approvals: {
    key: ['id'],
    maxRows: UNBOUNDED,
    columns: {
      id: uuid,
      nonce: matching(/^[A-Za-z0-9_-]+$/, MAX_NONCE_LENGTH, 'must be base64url'),
      agent_id: holderId,
      agent_name: actorName,
      token_hash: bytes32,
      action: oneOf(APPROVED_ACTIONS),
      path,
      key: mac,
      basis: bytes32,
      terms: json(JSON_LENGTH, approvalTerms),
      method: nullable(logText),
      host: nullable(logText),
      target_path: nullable(logText),
      purpose: nullable(logText),
      status: oneOf(APPROVAL_STATUSES),
      requested_at: time,
      answer_by: time,
      approvers: json(
        JSON_LENGTH,
        listOf(objectOf({ operator: actorName, operatorId: holderId, at: time }), 0, MAX_QUORUM),
      ),
      ended_by: nullable(actorName),
      ended_at: nullable(time),
      reason: nullable(logText),
      uses_left: nullable(count),
      grant_ends_at: nullable(time),
      expires_at: time,
      mac,
    },
  },
  approval_requests: {
    key: ['id'],
    maxRows: UNBOUNDED,
    columns: { id: uuid, expires_at: time, sealed: base64(1, 8 * 1024 * 1024) },
  },
  bulk_revocations: {
    key: ['seq'],
    maxRows: UNBOUNDED,
    columns: {
      seq: number,
      agent_id: either(empty, holderId),
      credential_id: either(empty, uuid),
      kind: either(empty, leaseKind),
      revoked_at: time,
    },
  },
  exposures: {
    key: ['path', 'credential_id', 'version', 'kind', 'agent_name'],
    maxRows: UNBOUNDED,
    columns: {
      path,
      credential_id: uuid,
      version: number,
      kind: oneOf(['retrieve', 'use', 'token']),
      agent_name: actorName,
      first_at: time,
      last_at: time,
      times: integer(1, MAX_TIMES),
    },
  },
  exposure_progress: { key: ['id'], maxRows: 1, columns: { id: equalTo(1), through_seq: count } },
  keyset: {
    key: ['id'],
    maxRows: 1,
    columns: { id: equalTo(1), version: number, root_version: number, sealed: keyset.sealed },
  },
  key_slots: {
    key: ['id'],
    unique: 'name',
    maxRows: MAX_SLOTS,
    columns: {
      id: uuid,
      name: slotName,
      kind: slotKind,
      parameters: json(JSON_LENGTH, slotParameters),
      public_key: bytes32,
      created_at: time,
      root_version: number,
      sealed_root: sealedRoot,
      mac,
    },
  },
  data_key_seals: {
    key: ['key_id'],
    maxRows: MAX_HELD_ROWS,
    columns: { key_id: matching(/^[0-9a-f]{8}$/, 8, 'must be 8 hexadecimal digits'), seals: count },
  },
  log_streams: {
    key: ['name'],
    maxRows: MAX_HELD_ROWS,
    columns: {
      name: matching(/^[a-z][a-z0-9+-]{0,31}$/, 32, 'must be the name of a log stream'),
      seq: count,
    },
  },
};

/** The number of the last migration that is a script. */
const LAST_SCRIPT = 1;
/** The number of the last migration, after which the tables are these. */
export const NEWEST_SCHEMA = Math.max(
  LAST_SCRIPT,
  ...Object.values(ROW_RULES).flatMap(({ since = {} }) => Object.values(since)),
);

/** The rules of the columns that a table had after the migration with the number. */
export function rulesAt(schema: number, { columns, since = {} }: TableRules): [name: string, rule: FieldRule][] {
  return Object.entries(columns).filter(([name]) => (since[name] ?? 1) <= schema);
}
