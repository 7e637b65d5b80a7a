/** MACs on the rows on which decisions depend: added when a row is stored, checked when it is read. */
import type { Agent, Session } from '../core/agent.ts';
import type { Credential } from '../core/credential.ts';
import type { IdempotencyRecord } from '../core/idempotency.ts';
import type { Operator } from '../core/operator.ts';
import type { Policy } from '../core/policy.ts';
import type { SubjectKind } from '../core/state.ts';
import type { Usage } from '../core/target.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { isRowAuthentic as isMacValid, type RowFields, type RowKind, rowMac } from '../crypto/row-mac.ts';
import type { Authenticated } from '../store/store.ts';

type RowKey = VaultKeys['row'];

interface AuthenticatedRows<Row> {
  withMac(key: RowKey, row: Row): Authenticated<Row>;
  isAuthentic(key: RowKey, row: Authenticated<Row>): boolean;
}

function authenticatedRows<Row>(kind: RowKind, fieldsOf: (row: Row) => RowFields): AuthenticatedRows<Row> {
  return {
    withMac: (key, row) => ({ ...row, mac: rowMac(key, kind, fieldsOf(row)) }),
    isAuthentic: (key, row) => isMacValid(key, kind, fieldsOf(row), row.mac),
  };
}

export const AUTHENTICATED_ROWS = {
  agent: authenticatedRows('agent', (agent: Agent) => [
    agent.id,
    agent.name,
    agent.description,
    agent.publicKey,
    agent.registeredAt,
    // Agents whose sessions were never ended keep the bytes that they had before this column existed.
    ...(agent.sessionsEndedAt == null && agent.formerPublicKey == null ? [] : [agent.sessionsEndedAt ?? '']),
    ...(agent.formerPublicKey == null ? [] : [agent.formerPublicKey, agent.formerKeyUntil ?? 0]),
  ]),
  operator: authenticatedRows('operator', (operator: Operator) => [
    operator.id,
    operator.name,
    operator.description,
    operator.roles,
    operator.publicKey,
    operator.addedAt,
    operator.sessionsEndedAt ?? '',
  ]),
  policy: authenticatedRows('policy', (policy: Policy) => [
    policy.name,
    policy.principal,
    policy.resources,
    policy.actions,
    policy.maxTtlSeconds,
    policy.createdAt,
    // Rows from before limits existed keep their MAC, and their replies have no such property.
    ...(policy.limits == null ? [] : [JSON.stringify(policy.limits)]),
  ]),
  session: authenticatedRows('session', (session: Session) => [
    session.tokenHash,
    session.agentId,
    session.issuedAt,
    session.expiresAt,
    // Sessions of agents keep the bytes that they had before operators existed.
    ...(session.endsAt == null ? [] : [session.endsAt]),
  ]),
  credential: authenticatedRows('credential', (credential: Credential) => [
    credential.id,
    credential.path,
    credential.type,
    credential.description,
    credential.createdAt,
    credential.updatedAt,
    credential.version,
  ]),
  usage: authenticatedRows('targets', (usage: Usage) => [
    usage.credentialId,
    usage.path,
    usage.service ?? '',
    JSON.stringify(usage.targets),
    JSON.stringify(usage.placement),
    usage.updatedAt,
  ]),
  reply: authenticatedRows('reply', (record: IdempotencyRecord) => [
    record.id,
    record.agentId,
    record.requestMac,
    record.reply,
    record.expiresAt,
  ]),
};

const ROWS_BY_SUBJECT = {
  agent: AUTHENTICATED_ROWS.agent,
  operator: AUTHENTICATED_ROWS.operator,
  policy: AUTHENTICATED_ROWS.policy,
  credential: AUTHENTICATED_ROWS.credential,
  targets: AUTHENTICATED_ROWS.usage,
  session: AUTHENTICATED_ROWS.session,
} satisfies Readonly<Record<SubjectKind, unknown>>;

/** Whether the MAC of a row of the kind is valid. */
export function isRowAuthentic(kind: SubjectKind, key: RowKey, row: Authenticated<object>): boolean {
  return ROWS_BY_SUBJECT[kind].isAuthentic(key, row as never);
}
