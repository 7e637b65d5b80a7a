/**
 * State that must match the audit log. A row with a MAC is used only if the newest entry with its subject
 * records exactly that MAC. Replayed and rolled-back rows therefore have no effect. SOURCE: docs/formats.md, "State in
 * the log".
 */

import { HELD_RESOURCES } from '../../core/change.ts';
import type { Agent } from '../agents/agent.ts';
import type { Approval } from '../approvals/approval.ts';
import type { Credential } from '../credentials/credential.ts';
import type { Operator } from '../operators/operator.ts';
import type { Policy } from '../policies/policy.ts';
import type { Session } from '../sessions/session.ts';
import type { TargetBinding } from '../use/target.ts';

export const REMOVED = 'removed';

export interface RecordedState {
  readonly subject: string;
  readonly state: string;
}

/**
 * The subject of a row in the audit log. WHY an agent's name in lower case and not its id: an agent that is registered
 * again replaces what the audit log says about the previous one, as its row does. WHY a session's time: subjects of
 * logins are appended to the index, and the recent ones are a range of it.
 */
export const SUBJECT = {
  agent: ({ name }: Pick<Agent, 'name'>): string => `agent:${name.toLowerCase()}`,
  operator: ({ name }: Pick<Operator, 'name'>): string => name.toLowerCase(),
  policy: ({ name }: Pick<Policy, 'name'>): string => `policy:${name}`,
  credential: ({ path }: Pick<Credential, 'path'>): string => `credential:${path}`,
  targets: ({ path }: Pick<TargetBinding, 'path'>): string => `targets:${path}`,
  approval: ({ id }: Pick<Approval, 'id'>): string => `approval:${id}`,
  session: ({ issuedAt, tokenHash }: Pick<Session, 'issuedAt' | 'tokenHash'>): string =>
    `session:${issuedAt}:${tokenHash}`,
};

export type SubjectKind = keyof typeof SUBJECT;

/** `row` has the columns of the subject. */
export function subjectOf<K extends SubjectKind>(kind: K, row: Parameters<(typeof SUBJECT)[K]>[0]): string {
  const toSubject = SUBJECT[kind] as (of: typeof row) => string;
  return toSubject(row);
}

export const KEYSET_SUBJECT = 'keyset';

/** Whether the row is an agent, an operator, a policy or the keyset, which nodes hold in memory. */
export function isControlSubject(subject: string): boolean {
  return HELD_RESOURCES.some((resource) => subject.startsWith(`${resource}:`)) || subject === KEYSET_SUBJECT;
}
