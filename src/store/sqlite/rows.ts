/** From rows to what the rules know. Columns are trusted to have the schema's types (STRICT), and nothing more. */
import type { SQLOutputValue } from 'node:sqlite';
import type { Agent, PublicKey, Session } from '../../core/agent.ts';
import type { AuditEntry } from '../../core/audit.ts';
import type { Credential, CredentialVersion } from '../../core/credential.ts';
import type { IdempotencyId, KeptReply } from '../../core/idempotency.ts';
import type { Lease } from '../../core/lease.ts';
import type {
  ActorName,
  AgentId,
  AgentName,
  CredentialId,
  CredentialType,
  LeaseId,
  PolicyName,
  TokenHash,
} from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { Pattern } from '../../core/pattern.ts';
import type { Action, Policy, Principal, TtlSeconds } from '../../core/policy.ts';
import type { Authenticated } from '../port.ts';

export type Row = Record<string, SQLOutputValue | undefined>;

const text = (row: Row, column: string): string => String(row[column]);
const number = (row: Row, column: string): number => Number(row[column]);

export function toAgent(row: Row): Authenticated<Agent> {
  return {
    id: text(row, 'id') as AgentId,
    name: text(row, 'name') as AgentName,
    description: text(row, 'description'),
    publicKey: text(row, 'public_key') as PublicKey,
    registeredAt: number(row, 'registered_at'),
    mac: text(row, 'mac'),
  };
}

/** Lists are kept as JSON; what is not a list of texts any more was altered, and then the MAC does not fit either. */
function texts(json: string): string[] {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) ? list.map(String) : [];
  } catch {
    return [];
  }
}

export function toPolicy(row: Row): Authenticated<Policy> {
  return {
    name: text(row, 'name') as PolicyName,
    principal: text(row, 'principal') as Principal,
    resources: texts(text(row, 'resources')) as Pattern[],
    actions: texts(text(row, 'actions')) as Action[],
    maxTtlSeconds: number(row, 'max_ttl') as TtlSeconds,
    createdAt: number(row, 'created_at'),
    mac: text(row, 'mac'),
  };
}

export function toSession(row: Row): Authenticated<Session> {
  return {
    tokenHash: text(row, 'token_hash') as TokenHash,
    agentId: text(row, 'agent_id') as AgentId,
    issuedAt: number(row, 'issued_at'),
    expiresAt: number(row, 'expires_at'),
    mac: text(row, 'mac'),
  };
}

export function toReply(row: Row): Authenticated<KeptReply> {
  return {
    id: text(row, 'id') as IdempotencyId,
    agentId: text(row, 'agent_id') as AgentId,
    requestMac: text(row, 'request_mac'),
    reply: text(row, 'reply'),
    expiresAt: number(row, 'expires_at'),
    mac: text(row, 'mac'),
  };
}

export function toCredential(row: Row): Credential {
  return {
    id: text(row, 'id') as CredentialId,
    path: text(row, 'path') as CredentialPath,
    type: text(row, 'type') as CredentialType,
    description: text(row, 'description'),
    createdAt: number(row, 'created_at'),
    updatedAt: number(row, 'updated_at'),
    version: number(row, 'version'),
  };
}

export function toVersion(row: Row): CredentialVersion {
  const sealed = row['sealed'];
  return {
    version: number(row, 'version'),
    type: text(row, 'type') as CredentialType,
    createdAt: number(row, 'created_at'),
    content: sealed instanceof Uint8Array ? sealed : new Uint8Array(),
  };
}

/** What is said of a credential, without its newest value. */
export const CREDENTIAL_COLUMNS = 'id, path, type, description, created_at, updated_at, version, number';

/** A credential by its path, with its newest version where that stands in the row; the columns as `toCredentialWithNewest` takes them. */
export const CREDENTIAL_WITH_NEWEST = `SELECT id, type, description, created_at, updated_at, version, number,
  newest_at, newest_sealed FROM credentials WHERE path = ?`;

/** Any version of a credential by its number, wherever it stands; both parameters come twice. */
export const VERSION = `SELECT version, type, created_at, sealed FROM credential_versions
  WHERE credential_id = ? AND version = ?
  UNION ALL SELECT version, type, newest_at, newest_sealed FROM credentials
  WHERE id = ? AND version = ? AND newest_sealed IS NOT NULL`;

/** When each version of a credential was stored; the parameter comes twice. */
export const HISTORY = `SELECT version, created_at FROM credential_versions WHERE credential_id = ?
  UNION ALL SELECT version, newest_at FROM credentials WHERE id = ? AND newest_sealed IS NOT NULL ORDER BY version`;

type CredentialRow = readonly [
  string,
  string,
  string,
  number,
  number,
  number,
  number,
  number | null,
  Uint8Array | null,
];

/**
 * From a row as an array. `path` is the one that was asked for: the same text, and already known to the maps of the turn.
 * `newest` is null where it does not stand in the row.
 */
export function toCredentialWithNewest(
  row: unknown,
  path: CredentialPath,
): { credential: Credential; number: number; newest: CredentialVersion | null } {
  const [id, type, description, createdAt, updatedAt, version, number, newestAt, sealed] = row as CredentialRow;
  return {
    credential: {
      id: id as CredentialId,
      path,
      type: type as CredentialType,
      description,
      createdAt,
      updatedAt,
      version,
    },
    number,
    newest:
      newestAt === null || sealed === null
        ? null
        : { version, type: type as CredentialType, createdAt: newestAt, content: sealed },
  };
}

export function toLease(row: Row): Lease {
  const revokedAt = row['revoked_at'];
  return {
    id: text(row, 'id') as LeaseId,
    agentId: text(row, 'agent_id') as AgentId,
    credentialId: text(row, 'credential_id') as CredentialId,
    agentName: text(row, 'agent_name') as ActorName,
    path: text(row, 'path') as CredentialPath,
    version: number(row, 'version'),
    policyName: text(row, 'policy_name'),
    issuedAt: number(row, 'issued_at'),
    expiresAt: number(row, 'expires_at'),
    revokedAt: revokedAt === null || revokedAt === undefined ? null : Number(revokedAt),
    seq: number(row, 'seq'),
  };
}

const ENTRY_COLUMNS = `seq, id, timestamp, event_type, agent_name, resource, action, result, policy_name, lease_id, reason,
  request_id, remote_addr, hmac`;

/** A range of the log; its columns stand in the order that `toEntry` takes them, as arrays. */
export const ENTRIES_IN_RANGE = `SELECT ${ENTRY_COLUMNS} FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?`;

/** The same, with the function `gather` called for each row instead. */
export const ENTRIES_GATHERED = `SELECT count(gather(${ENTRY_COLUMNS})) FROM
  (SELECT * FROM audit_entries WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?)`;

type EntryRow = [
  number,
  string,
  string,
  string,
  string,
  string,
  string,
  string,
  string | null,
  string | null,
  string | null,
  string | null,
  string | null,
  string,
];

/** From a row as an array, which costs half of what an object costs. */
export function toEntry(row: unknown): AuditEntry {
  const values = row as EntryRow;
  return {
    seq: values[0],
    id: values[1],
    timestamp: values[2],
    event_type: values[3],
    agent_name: values[4],
    resource: values[5],
    action: values[6],
    result: values[7],
    policy_name: values[8],
    lease_id: values[9],
    reason: values[10],
    request_id: values[11],
    remote_addr: values[12],
    hmac: values[13],
  };
}
