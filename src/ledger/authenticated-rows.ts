/** MACs on the rows on which decisions depend: added when a row is stored, checked when it is read. */
import type { Agent, Session } from '../core/agent.ts';
import type { Approval } from '../core/approval.ts';
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

/** All but the id, in the order of the MAC. */
const APPROVAL_COLUMNS = [
  'nonce',
  'agentId',
  'agentName',
  'tokenHash',
  'action',
  'path',
  'key',
  'basis',
  'terms',
  'method',
  'host',
  'targetPath',
  'purpose',
  'status',
  'requestedAt',
  'answerBy',
  'approvers',
  'endedBy',
  'endedAt',
  'reason',
  'usesLeft',
  'grantEndsAt',
  'expiresAt',
] as const satisfies readonly (keyof Approval)[];

export const AUTHENTICATED_ROWS = {
  agent: authenticatedRows('agent', (agent: Agent) => [
    agent.id,
    agent.name,
    agent.description,
    agent.publicKey,
    agent.registeredAt,
    agent.sessionsEndedAt ?? '',
    agent.formerPublicKey ?? '',
    agent.formerKeyUntil ?? '',
    agent.registeredBy,
  ]),
  operator: authenticatedRows('operator', (operator: Operator) => [
    operator.id,
    operator.name,
    operator.description,
    operator.roles,
    operator.publicKey ?? '',
    operator.addedAt,
    operator.sessionsEndedAt ?? '',
    JSON.stringify(operator.passkeys),
    JSON.stringify(operator.identity),
  ]),
  policy: authenticatedRows('policy', (policy: Policy) => [
    policy.name,
    policy.principal,
    policy.resources,
    policy.actions,
    policy.maxTtlSeconds,
    policy.createdAt,
    JSON.stringify(policy.limits),
    JSON.stringify(policy.approval),
  ]),
  session: authenticatedRows('session', (session: Session) => [
    session.tokenHash,
    session.agentId,
    session.issuedAt,
    session.expiresAt,
    session.endsAt ?? '',
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
  approval: authenticatedRows('approval', (approval: Approval) => [
    approval.id,
    JSON.stringify(APPROVAL_COLUMNS.map((column) => approval[column])),
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
  approval: AUTHENTICATED_ROWS.approval,
} satisfies Readonly<Record<SubjectKind, unknown>>;

export function isRowAuthentic(kind: SubjectKind, key: RowKey, row: Authenticated<object>): boolean {
  return ROWS_BY_SUBJECT[kind].isAuthentic(key, row as never);
}
