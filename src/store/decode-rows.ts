/**
 * Decodes rows for all stores, which use the same column names. Relies on the column types of the schema and on nothing
 * else.
 */
import type { Agent, PublicKey, Session } from '../core/agent.ts';
import type { Credential, CredentialVersion } from '../core/credential.ts';
import type { IdempotencyId, IdempotencyRecord } from '../core/idempotency.ts';
import type { Lease } from '../core/lease.ts';
import type {
  ActorName,
  AgentId,
  AgentName,
  CredentialId,
  CredentialType,
  LeaseId,
  PolicyName,
  TokenHash,
} from '../core/names.ts';
import type { CredentialPath } from '../core/path.ts';
import type { Pattern } from '../core/pattern.ts';
import type { Action, Policy, Principal, TtlSeconds } from '../core/policy.ts';
import type { Authenticated } from './store.ts';

/** A row by column name. */
export type Row = Readonly<Record<string, unknown>>;

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

/** Lists are stored as JSON. Invalid JSON means an altered row, whose MAC does not match either. */
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

export function toReply(row: Row): Authenticated<IdempotencyRecord> {
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

/** With its MAC. */
export function toLoadedCredential(row: Row): Authenticated<Credential> {
  return { ...toCredential(row), mac: text(row, 'mac') };
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
