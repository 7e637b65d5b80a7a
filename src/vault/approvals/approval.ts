/**
 * Approvals: requests that operators have to allow before they pass, and their answers. SOURCE: docs/approvals.md.
 */

import * as grammar from '../../core/grammars.ts';
import {
  type ActorName,
  ADMIN,
  type AgentId,
  type Brand,
  type CredentialId,
  type TokenHash,
} from '../../core/names.ts';
import { PAGE } from '../../core/page.ts';
import type { CredentialPath } from '../../core/path.ts';
import { list, record } from '../../engine/compounds.ts';
import { internal, nullable, optional, type ReplyOf, type ValueOf } from '../../engine/field.ts';
import { anyText, bytes, count, oneOf, text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';
import type { Agent } from '../agents/agent.ts';
import { canSignIn, hasRole, type Operator } from '../operators/operator.ts';
import {
  APPROVED_ACTIONS,
  type ApprovalTerms,
  type ApprovedAction,
  describeLimit,
  MAX_QUORUM,
  TERMS,
} from '../policies/approval-rule.ts';
import { Policy } from '../policies/policy.ts';
import { originOf, type TargetBinding, type UseRequest } from '../use/target.ts';
import { PURPOSE } from '../use/upstream-url.ts';

export type ApprovalId = Brand<string, 'ApprovalId'>;
/** Base64 of a MAC over what a grant covers; equal for requests that one grant covers. */
export type ApprovalKey = Brand<string, 'ApprovalKey'>;

export const APPROVAL_STATUSES = ['pending', 'approved', 'denied', 'timed_out', 'withdrawn'] as const;
export type ApprovalStatus = (typeof APPROVAL_STATUSES)[number];

const MAX_NONCE_LENGTH = 64;
const NONCE = grammar.matching(/^[A-Za-z0-9_-]+$/, [1, MAX_NONCE_LENGTH], 'must be base64url');

const APPROVER = {
  operator: text(grammar.actorName),
  /** An operator that is added again under its name is another one. */
  operatorId: internal(text(grammar.holderId)),
  at: time(),
};
type Approver = ValueOf<typeof APPROVER>;

/** The only list of the columns of an approval. */
const FIELDS = {
  id: text(grammar.id<ApprovalId>(), { wire: 'approval_id' }),
  /** An answer repeats it, so that it is about the request that the operator was shown. */
  nonce: text(NONCE),
  agentId: text(grammar.holderId),
  agentName: text(grammar.actorName, { wire: 'agent_name' }),
  /** The hash of the token that asked. */
  tokenHash: text(grammar.hash<TokenHash>()),
  action: oneOf(APPROVED_ACTIONS),
  path: text(grammar.path),
  key: text(grammar.hash<ApprovalKey>()),
  /** The SHA-256 of the policies, targets and key on which the answer relies. */
  basis: text(grammar.hash()),
  terms: record(TERMS, { title: 'Terms' }),
  /** Null for a retrieval, as `host` and `targetPath`. */
  method: nullable(anyText()),
  host: nullable(anyText()),
  targetPath: nullable(anyText({ wire: 'target_path' })),
  purpose: nullable(anyText()),
  status: oneOf(APPROVAL_STATUSES),
  requestedAt: time({ wire: 'requested_at' }),
  answerBy: time({ wire: 'expires_at', description: 'When a request without an answer times out.' }),
  approvers: list(record(APPROVER, { title: 'Approver' }), { min: 0, max: MAX_QUORUM }, { wire: 'approvals' }),
  endedBy: nullable(text(grammar.actorName, { wire: 'answered_by' })),
  endedAt: nullable(time({ wire: 'answered_at' })),
  reason: nullable(anyText()),
  /** The remaining uses of an approved request; null if the number is not limited. */
  usesLeft: nullable(count({ wire: 'uses_left' })),
  grantEndsAt: nullable(time({ wire: 'grant_ends_at' })),
  expiresAt: time(),
};
export const APPROVAL_ROWS = stored({
  table: 'approvals',
  key: 'id',
  subject: { fields: ['id'] },
  fields: FIELDS,
});
export type Approval = ValueOf<typeof FIELDS>;

const { id, nonce, status, agentName, action, path, approvers, method, host, targetPath, purpose } = FIELDS;
const { requestedAt, answerBy, endedAt, endedBy, reason, usesLeft, grantEndsAt } = FIELDS;
const { policyNames, each, uses, seconds, isForSession, quorum } = TERMS;

export const ListedApproval = shape('ListedApproval', {
  ...{ id, nonce, status, agentName, action, path, policyNames },
  covers: anyText({ description: 'What an approval allows, as a sentence.' }),
  ...{ each, uses, seconds, isForSession, quorum, approvers, method, host, targetPath, purpose },
  ...{ requestedAt, answerBy, endedAt, endedBy, reason, usesLeft, grantEndsAt },
});

const givenNonce = text({
  ...grammar.ofLength([1, MAX_NONCE_LENGTH], 'must be that of the approval'),
  description: 'The nonce of the approval that was read.',
});
export const ApproveRequest = shape('ApproveRequest', { nonce: givenNonce });
export const DenyRequest = shape('DenyRequest', {
  nonce: givenNonce,
  reason: optional(text({ ...PURPOSE, description: 'For the agent, and for the audit log.' })),
});
export const ApprovalsQuery = shape('ApprovalsQuery', {
  status: optional(oneOf(APPROVAL_STATUSES)),
  agentName: optional(text(grammar.actorName, { wire: 'agent' })),
  ...PAGE,
});

/** Makes the reply about an approval, with its status at the time `now`. */
export const toApprovalReply =
  (now: number) =>
  (approval: Approval): ReplyOf<typeof ListedApproval.fields> =>
    ListedApproval.toReply({
      ...approval,
      ...approval.terms,
      status: approvalStatus(approval, now),
      covers: describeScope(approval),
    });

/** The encrypted request that each approval is about. */
export const APPROVAL_REQUEST_ROWS = stored({
  table: 'approval_requests',
  key: ['id'],
  fields: { id, expiresAt: time(), sealed: bytes({ min: 1, max: 8 * 1024 * 1024 }) },
});
export type ApprovalRequest = ValueOf<typeof APPROVAL_REQUEST_ROWS.fields>;

/** How long a retry still learns that its request timed out or was withdrawn; afterwards it asks again. */
export const ENDED_NOTICE_MS = 60_000;

/** The time decides, even before an entry records it. */
export function approvalStatus({ status, answerBy }: Approval, now: number): ApprovalStatus {
  return status === 'pending' && now >= answerBy ? 'timed_out' : status;
}

/** Whether the approval lets a request pass now that its key covers. */
export function isGrant(approval: Approval, basis: string, tokenHash: TokenHash, now: number): boolean {
  const { status, usesLeft, grantEndsAt, terms } = approval;
  if (status !== 'approved' || approval.basis !== basis) return false;
  if (terms.isForSession && approval.tokenHash !== tokenHash) return false;
  return now < (grantEndsAt ?? 0) && (usesLeft === null || usesLeft > 0);
}

export interface CoveredUse {
  readonly use: UseRequest;
  /** The digest of the headers and the body. */
  readonly bodyDigest: string;
  /** Whether it opens a WebSocket, over which more is sent than was shown. */
  readonly isUpgrade: boolean;
}

/** The scope of a grant of these terms, as parts of its key. Two requests with equal parts share a grant. */
export function coveredParts(
  agentId: AgentId,
  action: ApprovedAction,
  path: CredentialPath,
  { each }: ApprovalTerms,
  request: CoveredUse | { readonly version: string } | null,
): readonly string[] {
  const whole = [agentId, action, path, each];
  if (request === null) return whole;
  if ('version' in request) return [...whole, request.version];
  const { use, bodyDigest, isUpgrade } = request;
  const kind = isUpgrade ? ['websocket'] : [];
  const host = [...whole, originOf(use.url)];
  if (each === 'host') return [...host, ...kind];
  const endpoint = [...host, use.method, use.url.path];
  return each === 'endpoint' ? [...endpoint, ...kind] : [...endpoint, use.url.query, bodyDigest];
}

/** The holder of the approval: its keys, and when a panic last ended its access. */
type KeyHolder = Pick<Agent, 'sessionsEndedAt'> &
  Partial<Pick<Agent, 'formerPublicKey'>> & { readonly publicKey: string | null };

export interface ApprovalBasis {
  /** The policies that demand it, and the one that decides. */
  readonly policies: readonly Policy[];
  /** Another credential at the path, after a deletion, is another one. */
  readonly credentialId: CredentialId | null;
  readonly binding: TargetBinding | null;
  readonly holder: KeyHolder | null;
}

/** The text on which an approval relies. A change of any part voids it. */
export function basisText({ policies, credentialId, binding, holder }: ApprovalBasis): string {
  const byName = [...new Map(policies.map((policy) => [policy.name, policy])).values()];
  const rules = byName.sort((a, b) => (a.name < b.name ? -1 : 1)).map((policy) => Policy.toReply(policy));
  const targets = binding === null ? null : [binding.service, binding.allowedTargets, binding.placement];
  const { publicKey = null, formerPublicKey = null, sessionsEndedAt = null } = holder ?? {};
  return JSON.stringify([rules, credentialId, targets, publicKey, formerPublicKey, sessionsEndedAt]);
}

/** Whether an operator of the name may not answer: the request is its own, or its agent's where two have to agree. */
export function isOwnRequest(name: ActorName, approval: Pick<Approval, 'agentName' | 'terms'>, agent: Agent | null) {
  if (approval.agentName === name) return true;
  return approval.terms.quorum > 1 && agent?.registeredBy.includes(name) === true;
}

/** Whether the administrator's token counts as an approver: an operator that holds it would count twice. */
export function countsToken({ terms }: Pick<Approval, 'terms'>, operators: readonly Operator[]): boolean {
  return terms.quorum === 1 || operators.length === 0;
}

/** How many may answer. While no operator exists, the administrator's token is the one approver. */
export function countApprovers(
  operators: readonly Operator[],
  request: Pick<Approval, 'agentName' | 'terms'>,
  agent: Agent | null,
): number {
  if (operators.length === 0) return isOwnRequest(ADMIN, request, agent) ? 0 : 1;
  const mayAnswer = (operator: Operator): boolean =>
    hasRole(operator, 'approver') && canSignIn(operator) && !isOwnRequest(operator.name, request, agent);
  return operators.filter(mayAnswer).length;
}

export function votesOf(request: Approval, operators: readonly Operator[], agent: Agent | null): readonly Approver[] {
  const isValid = ({ operator, operatorId }: Approver): boolean => {
    if (isOwnRequest(operator, request, agent)) return false;
    if (operator === ADMIN) return countsToken(request, operators);
    const known = operators.find(({ id }) => id === operatorId);
    return known !== undefined && hasRole(known, 'approver');
  };
  return request.approvers.filter(isValid);
}

/** Why an approval timed out, for the audit log. */
export function describeTimeout({ approvers, terms }: Pick<Approval, 'approvers' | 'terms'>): string {
  if (approvers.length === 0) return 'no answer came in time';
  return `${approvers.length} of ${terms.quorum} operators approved in time`;
}

export function describeScope({ action, terms, path, agentName, ...request }: Approval): string {
  const { each } = terms;
  const agent = agentName.includes(':') ? agentName : `agent:${agentName}`;
  const named = request.purpose === null ? '' : `, ${request.purpose},`;
  if (action === 'retrieve') return `One retrieval of ${path}${named} by ${agent}, which then has the value.`;
  const { method, host, targetPath } = request;
  const what =
    each === 'request'
      ? `This exact ${method} request to ${host}${targetPath}`
      : each === 'endpoint'
        ? `Any ${method} request to ${host}${targetPath}`
        : `Any request to ${host}`;
  return `${what} with ${path} by ${agent}, ${describeLimit(terms)}.`;
}
