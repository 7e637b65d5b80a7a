/**
 * The part of a decision that waits for operators: whether a request that policies allow needs an approval, has one, or
 * asks for one. A grant is used in the same batch as the request that it lets pass. SOURCE: docs/approvals.md.
 */

import type { ReadSet } from '../../core/batch-state.ts';
import { type Change, putRow } from '../../core/change.ts';
import type { Denial } from '../../core/denials.ts';
import { actorId, actorName } from '../../core/identity.ts';
import type { AgentId, CredentialId, PolicyName, TokenHash } from '../../core/names.ts';
import { denied, type OperationInput, type Outcome, rejected, succeeded } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { EntryDraft } from '../audit/audit-entry.ts';
import { type ApprovalTerms, type ApprovedAction, combineRules } from '../policies/approval-rule.ts';
import type { Policy } from '../policies/policy.ts';
import { originOf, type TargetBinding, type UseRequest } from '../use/target.ts';
import {
  type Approval,
  type ApprovalId,
  type ApprovalKey,
  type ApprovalRequest,
  type ApprovalStatus,
  approvalStatus,
  basisText,
  countApprovers,
  ENDED_NOTICE_MS,
  isGrant,
} from './approval.ts';

/** A caller's preparation after it learned that an approval is needed. */
export interface ApprovalAttempt {
  /** Id of the approval that is added if none exists. */
  readonly id: ApprovalId;
  readonly nonce: string;
  readonly key: ApprovalKey;
  readonly needed: ApprovalNeeded;
  /** Null to find an approval, and add none. */
  readonly encryptedRequest: Uint8Array | null;
  /** The approval that the caller waits for already. */
  readonly awaited: ApprovalId | null;
  /** Base64 of the SHA-256. */
  digestOf(text: string): string;
}

export function approvalReads(ask: ApprovalAttempt | null): Pick<ReadSet, 'approvalKey'> {
  return ask === null ? {} : { approvalKey: ask.key };
}

export interface ApprovalNeeded {
  readonly approval: 'needed';
  readonly agentId: AgentId;
  readonly terms: ApprovalTerms;
  /** Null for a retrieval. */
  readonly request: UseRequest | null;
}

/** Instead of the operation's reply. */
export type ApprovalPending =
  | ApprovalNeeded
  | { readonly approval: 'pending'; readonly id: ApprovalId; readonly answerBy: number };

export function isUndecided<R extends object>(reply: R | ApprovalPending): reply is ApprovalPending {
  return 'approval' in reply;
}

export interface ApprovedSubject {
  readonly action: ApprovedAction;
  readonly path: CredentialPath;
  readonly policyName: string;
  readonly credentialId: CredentialId;
  readonly binding: TargetBinding | null;
  /** Null for a retrieval. */
  readonly request: UseRequest | null;
  readonly purpose: string | null;
}

/** A request that may pass. */
export interface Approved {
  /** Null if it needed no approval. */
  readonly approvalId: ApprovalId | null;
  /** Names the approvers; null if it needed no approval. */
  readonly reason: string | null;
  readonly changes: readonly Change[];
}

const NOT_NEEDED: Approved = { approvalId: null, reason: null, changes: [] };

export function requireApproval(
  input: OperationInput,
  subject: ApprovedSubject,
  ask: ApprovalAttempt | null,
): Approved | Outcome<ApprovalPending> {
  const { identity, state } = input;
  if (identity.kind === 'admin') return NOT_NEEDED;
  const { policies } = state.control;
  const { action, path, policyName } = subject;
  const deciding = policies.get(policyName as PolicyName);
  // A role decided, and no policy.
  if (deciding === null) return NOT_NEEDED;
  const name = identity.kind === 'operator' ? identity.operator.name : identity.agent.name;
  const demanding = policies.findApprovalPolicies(name, action, path);
  const terms = combineRules(demanding);
  if (terms === null) return NOT_NEEDED;
  const needed: ApprovalNeeded = { approval: 'needed', agentId: actorId(identity), terms, request: subject.request };
  if (ask === null || JSON.stringify(ask.needed) !== JSON.stringify(needed)) {
    return succeeded<ApprovalPending>(needed, null);
  }
  return decideApproval(input, subject, ask, [...demanding, deciding]);
}

function decideApproval(
  input: OperationInput,
  subject: ApprovedSubject,
  ask: ApprovalAttempt,
  policies: readonly Policy[],
): Approved | Outcome<ApprovalPending> {
  const { identity, state, moment } = input;
  const { now } = moment;
  const holder = identity.kind === 'operator' ? identity.operator : identity.kind === 'admin' ? null : identity.agent;
  const { credentialId, binding } = subject;
  const basis = ask.digestOf(basisText({ policies, credentialId, binding, holder }));
  const tokenHash = tokenHashOf(input);
  const known = state.approvalsOf(ask.key).filter(({ agentId }) => agentId === actorId(identity));
  const grant = known.find((approval) => isGrant(approval, basis, tokenHash, now));
  if (grant !== undefined) return pass(grant);
  const [current] = known.filter((approval) => approval.basis === basis || approval.id === ask.awaited);
  if (current !== undefined) {
    const status = approvalStatus(current, now);
    if (status === 'pending') return pending(current);
    const error = endOfApproval(current, status, now);
    if (error !== null) return denied(input, error, { policyName: subject.policyName });
  }
  // Another request needs another id, nonce and ciphertext.
  const isSpent = ask.awaited === ask.id || known.some(({ id }) => id === ask.id);
  if (isSpent || ask.encryptedRequest === null) return succeeded<ApprovalPending>(ask.needed, null);
  return askForApproval(input, subject, ask, { basis, tokenHash, encryptedRequest: ask.encryptedRequest });
}

function tokenHashOf({ identity }: OperationInput): TokenHash {
  if (identity.kind === 'admin') return '' as TokenHash;
  return identity.kind === 'lease' ? (identity.lease.tokenHash ?? ('' as TokenHash)) : identity.session.tokenHash;
}

function pending({ id, answerBy }: Approval, entry: EntryDraft | null = null, changes: readonly Change[] = []) {
  return succeeded<ApprovalPending>({ approval: 'pending', id, answerBy }, entry, changes);
}

function pass(grant: Approval): Approved {
  const { usesLeft, approvers, id } = grant;
  const names = approvers.map(({ operator }) => operator).join(', ');
  const used: Approval = { ...grant, usesLeft: usesLeft === null ? null : usesLeft - 1 };
  return {
    approvalId: id,
    reason: `approved by ${names} (approval:${id})`,
    // A grant that is not counted stays as it is.
    changes: usesLeft === null ? [] : [putRow('approval', used)],
  };
}

const ASKED = 'approval.request' as const;

function askForApproval(
  { identity, state, moment, entry }: OperationInput,
  { action, path, policyName, request, purpose }: ApprovedSubject,
  { id, nonce, key, needed: { terms } }: ApprovalAttempt,
  {
    basis,
    tokenHash,
    encryptedRequest,
  }: Pick<Approval, 'basis' | 'tokenHash'> & { readonly encryptedRequest: Uint8Array },
): Outcome<ApprovalPending> {
  const { now } = moment;
  const agentName = actorName(identity);
  const agent = identity.kind === 'agent' || identity.kind === 'lease' ? identity.agent : null;
  if (countApprovers(state.control.operators(), { agentName, terms }, agent) < terms.quorum) {
    const denial: Denial = { code: 'too_few_approvers', quorum: terms.quorum };
    return rejected(denial, { ...entry(denial, { policyName }), eventType: ASKED });
  }
  const answerBy = now + terms.timeoutSeconds * 1000;
  const approval: Approval = {
    id,
    nonce,
    agentId: actorId(identity),
    agentName,
    tokenHash,
    action,
    path,
    key,
    basis,
    terms,
    method: request?.method ?? null,
    host: request === null ? null : originOf(request.url),
    targetPath: request?.url.path ?? null,
    purpose,
    status: 'pending',
    requestedAt: now,
    answerBy,
    approvers: [],
    endedBy: null,
    endedAt: null,
    reason: null,
    usesLeft: null,
    grantEndsAt: null,
    expiresAt: answerBy + ENDED_NOTICE_MS,
  };
  const asked: EntryDraft = {
    ...entry('allowed', {
      policyName,
      resource: `approval:${id}`,
      reason: `asks for an approval to ${action} ${path}`,
    }),
    eventType: ASKED,
  };
  const grantMs = Math.max(terms.seconds * 1000, ENDED_NOTICE_MS);
  const stored: ApprovalRequest = { id, expiresAt: answerBy + grantMs, sealed: encryptedRequest };
  return pending(approval, asked, [putRow('approval', approval), { kind: 'addApprovalRequest', request: stored }]);
}

/** The denial of a request whose approval ended; null if it ended so long ago that the request asks again. */
function endOfApproval(approval: Approval, status: ApprovalStatus, now: number): Denial | null {
  const { answerBy, endedAt } = approval;
  if (status === 'denied' && now < answerBy) return { code: 'approval_denied', approval };
  if (status === 'timed_out' && now < answerBy + ENDED_NOTICE_MS) return { code: 'approval_timed_out', approval };
  const isWithdrawn = status === 'withdrawn' && now < (endedAt ?? 0) + ENDED_NOTICE_MS;
  return isWithdrawn ? { code: 'approval_withdrawn', approval } : null;
}
