/** MACs on the rows on which decisions depend: added when a row is stored, checked when it is read. */
import type { Agent, Session } from '../core/agent.ts';
import type { Credential } from '../core/credential.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import type { Policy } from '../core/policy.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { isRowAuthentic, type RowFields, rowMac } from '../crypto/row-mac.ts';
import type { Authenticated } from '../store/store.ts';

type RowKey = VaultKeys['row'];

const agentFields = (agent: Agent): RowFields => [
  agent.id,
  agent.name,
  agent.description,
  agent.publicKey,
  agent.registeredAt,
];

const policyFields = (policy: Policy): RowFields => [
  policy.name,
  policy.principal,
  policy.resources,
  policy.actions,
  policy.maxTtlSeconds,
  policy.createdAt,
];

const sessionFields = (session: Session): RowFields => [
  session.tokenHash,
  session.agentId,
  session.issuedAt,
  session.expiresAt,
];

const credentialFields = (credential: Credential): RowFields => [
  credential.id,
  credential.path,
  credential.type,
  credential.description,
  credential.createdAt,
  credential.updatedAt,
  credential.version,
];

const idempotencyRecordFields = (record: IdempotencyRecord): RowFields => [
  record.id,
  record.agentId,
  record.requestMac,
  record.reply,
  record.expiresAt,
];

export const macAgent = (key: RowKey, agent: Agent): Authenticated<Agent> => ({
  ...agent,
  mac: rowMac(key, 'agent', agentFields(agent)),
});

export const macPolicy = (key: RowKey, policy: Policy): Authenticated<Policy> => ({
  ...policy,
  mac: rowMac(key, 'policy', policyFields(policy)),
});

export const macSession = (key: RowKey, session: Session): Authenticated<Session> => ({
  ...session,
  mac: rowMac(key, 'session', sessionFields(session)),
});

export const macCredential = (key: RowKey, credential: Credential): Authenticated<Credential> => ({
  ...credential,
  mac: rowMac(key, 'credential', credentialFields(credential)),
});

export const macIdempotencyRecord = (key: RowKey, record: IdempotencyRecord): Authenticated<IdempotencyRecord> => ({
  ...record,
  mac: rowMac(key, 'reply', idempotencyRecordFields(record)),
});

export const isAgentAuthentic = (key: RowKey, agent: Authenticated<Agent>): boolean =>
  isRowAuthentic(key, 'agent', agentFields(agent), agent.mac);

export const isPolicyAuthentic = (key: RowKey, policy: Authenticated<Policy>): boolean =>
  isRowAuthentic(key, 'policy', policyFields(policy), policy.mac);

export const isSessionAuthentic = (key: RowKey, session: Authenticated<Session>): boolean =>
  isRowAuthentic(key, 'session', sessionFields(session), session.mac);

export const isCredentialAuthentic = (key: RowKey, credential: Authenticated<Credential>): boolean =>
  isRowAuthentic(key, 'credential', credentialFields(credential), credential.mac);

export const isIdempotencyRecordAuthentic = (key: RowKey, record: Authenticated<IdempotencyRecord>): boolean =>
  isRowAuthentic(key, 'reply', idempotencyRecordFields(record), record.mac);
