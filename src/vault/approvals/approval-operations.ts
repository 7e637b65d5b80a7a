/** Answers, withdraws, reads and ends approvals. SOURCE: docs/approvals.md. */

import type { BatchState } from '../../core/batch-state.ts';
import { type Change, putRow } from '../../core/change.ts';
import { VOID_CAUSES, type VoidCause } from '../../core/denial-texts.ts';
import type { Denial, DenialOf } from '../../core/denials.ts';
import { actorId, actorName } from '../../core/identity.ts';
import { type ActorName, isOperatorName, type PrincipalName, SERVICE } from '../../core/names.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  operation,
  rejected,
  succeeded,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { EventType } from '../../core/permissions.ts';
import type { Agent } from '../agents/agent.ts';
import { draftEntry } from '../audit/audit-entry.ts';
import { hasRole } from '../operators/operator.ts';
import { decide } from '../policies/policy-index.ts';
import {
  type Approval,
  type ApprovalId,
  approvalStatus,
  basisText,
  countApprovers,
  countsToken,
  describeTimeout,
  isOwnRequest,
  votesOf,
} from './approval.ts';

export interface Answer {
  readonly isApproved: boolean;
  readonly nonce: string;
  /** The reason for the agent; null if the operator gave none. */
  readonly reason: string | null;
}

/** Adds an operator's approval, which grants the request once enough agree, or denies the request. */
export function answerApproval(
  context: Context,
  place: ApprovalPlace,
  { isApproved, nonce, reason }: Answer,
  digestOf: DigestOf,
): Operation<Approval> {
  const permission = isApproved ? 'approval.approve' : 'approval.deny';
  const resource = `approval:${place.id}`;
  return operation<Approval>({ context, permission, resource, reads: readsOf(place) }, (input) => {
    const { identity, state, moment, entry } = input;
    const approval = state.approval(place.id);
    if (approval === null) return denied(input, { code: 'approval_not_found' });
    const name = actorName(identity);
    const { policyNames } = approval.terms;
    const policyName = policyNames[0] ?? null;
    const deny = (denial: Denial, changes: readonly Change[] = []) => denied(input, denial, { policyName }, changes);
    if (nonce !== approval.nonce) return deny({ code: 'wrong_nonce' });
    if (isOwnRequest(name, approval, state.control.agentById(approval.agentId))) return deny({ code: 'own_request' });
    if (identity.kind === 'admin' && isApproved && !countsToken(approval, state.control.operators()))
      return deny({ code: 'token_not_counted' });
    const status = approvalStatus(approval, moment.now);
    if (status !== 'pending') return deny({ code: 'approval_ended', approval, status, attempt: 'answer' });
    const cause = whyVoid(state, approval, digestOf);
    if (cause !== null) {
      const withdrawn = endApproval(approval, 'withdrawn', SERVICE, VOID_CAUSES[cause], moment.now);
      return deny({ code: 'approval_void', approval, cause }, [putRow('approval', withdrawn)]);
    }
    if (!isApproved) {
      const ended = endApproval(approval, 'denied', name, reason, moment.now);
      return succeeded(ended, entry('allowed', { policyName, reason }), [putRow('approval', ended)]);
    }
    if (approval.approvers.some(({ operatorId }) => operatorId === actorId(identity)))
      return deny({ code: 'approved_already' });
    const agent = state.control.agentById(approval.agentId);
    const counted = { ...approval, approvers: votesOf(approval, state.control.operators(), agent) };
    const answered = approve(counted, { operator: name, operatorId: actorId(identity), at: moment.now });
    const lacking = answered.terms.quorum - answered.approvers.length;
    const why = lacking > 0 ? `${lacking} more must approve it` : reason;
    return succeeded(answered, entry('allowed', { policyName, reason: why }), [putRow('approval', answered)]);
  });
}

function approve(approval: Approval, vote: Approval['approvers'][number]): Approval {
  const { terms, expiresAt } = approval;
  const { operator, at: now } = vote;
  const approvers = [...approval.approvers, vote];
  if (approvers.length < terms.quorum) return { ...approval, approvers };
  const grantEndsAt = now + terms.seconds * 1000;
  return {
    ...approval,
    status: 'approved',
    approvers,
    endedBy: operator,
    endedAt: now,
    usesLeft: terms.uses,
    grantEndsAt,
    expiresAt: Math.max(expiresAt, grantEndsAt),
  };
}

/** Withdraws a request for the agent that asked, or for an operator, who also ends a grant this way. */
export function withdrawApproval(context: Context, place: ApprovalPlace): Operation<Approval> {
  const resource = `approval:${place.id}`;
  return operation<Approval>({ context, permission: 'approval.withdraw', resource, reads: readsOf(place) }, (input) => {
    const { identity, moment, entry } = input;
    const approval = findVisible(input, place);
    if ('code' in approval) return denied(input, approval);
    const status = approvalStatus(approval, moment.now);
    // Includes a grant that is used up or has ended: a request that it let pass may still run.
    if (status !== 'pending' && status !== 'approved')
      return denied(input, { code: 'approval_ended', approval, status, attempt: 'withdrawal' });
    const withdrawn = endApproval(approval, 'withdrawn', actorName(identity), null, moment.now);
    return succeeded(withdrawn, entry('allowed', { policyName: approval.terms.policyNames[0] ?? null }), [
      putRow('approval', withdrawn),
    ]);
  });
}

/** Agents, and operators without the role approver, see what they asked for. */
function findVisible(
  { identity, state }: OperationInput,
  { id }: ApprovalPlace,
): Approval | DenialOf<'approval_not_found' | 'approver_required'> {
  const approval = state.approval(id);
  const seesAll = identity.kind === 'admin' || (identity.kind === 'operator' && hasRole(identity.operator, 'approver'));
  if (approval !== null && (seesAll || actorId(identity) === approval.agentId)) return approval;
  return { code: seesAll || identity.kind !== 'operator' ? 'approval_not_found' : 'approver_required' };
}

/** Reads by operators are not recorded. */
export function readApproval(context: Context, place: ApprovalPlace): Operation<{ approval: Approval; now: number }> {
  return operation(
    {
      context,
      permission: 'approval.read',
      resource: `approval:${place.id}`,
      reads: { approval: place.id },
    },
    (input) => {
      const approval = findVisible(input, place);
      if (!('code' in approval)) return succeeded({ approval, now: input.moment.now }, null);
      return approval.code === 'approval_not_found' ? rejected(approval, null) : denied(input, approval);
    },
  );
}

/** The agent whose approvals the caller may list; null for all. */
export function listApprovals(context: Context): Operation<{ agent: Agent | null; now: number }> {
  return operation({ context, permission: 'approval.list', resource: '*' }, ({ identity, moment }) => {
    const agent = identity.kind === 'agent' || identity.kind === 'lease' ? identity.agent : null;
    return succeeded({ agent, now: moment.now }, null);
  });
}

/** An approval, and the path of its credential, with whose targets it is loaded. */
export interface ApprovalPlace {
  readonly id: ApprovalId;
  readonly path: CredentialPath;
}

export type DigestOf = (text: string) => string;

function readsOf({ id, path }: ApprovalPlace) {
  return { approval: id, credential: path, targets: path };
}

/** Ends the approval: it grants nothing afterwards. */
function endApproval(
  approval: Approval,
  status: 'denied' | 'timed_out' | 'withdrawn',
  endedBy: ActorName,
  reason: string | null,
  now: number,
): Approval {
  return { ...approval, status, endedBy, endedAt: now, reason, usesLeft: null, grantEndsAt: null };
}

/**
 * Records that an approval timed out or became void. Until the server submits it, each decision compares the time and
 * the basis itself.
 */
export function settleApproval(place: ApprovalPlace, digestOf: DigestOf): Operation<null> {
  return {
    reads: readsOf(place),
    auth: { kind: 'service' },
    decide(state, { now }) {
      const approval = state.approval(place.id);
      if (approval === null || (approval.status !== 'pending' && approval.status !== 'approved')) {
        return succeeded(null, null);
      }
      const isPending = approval.status === 'pending';
      if (isPending && now >= approval.answerBy) {
        const timedOut = endApproval(approval, 'timed_out', SERVICE, null, now);
        return settled('approval.timeout', timedOut, describeTimeout(approval));
      }
      const cause = whyVoid(state, approval, digestOf);
      const isLive = isPending || (now < (approval.grantEndsAt ?? 0) && approval.usesLeft !== 0);
      if (cause === null || !isLive) return succeeded(null, null);
      const reason = VOID_CAUSES[cause];
      return settled('approval.withdraw', endApproval(approval, 'withdrawn', SERVICE, reason, now), reason);
    },
  };
}

/** Records a change that the server makes itself. */
function settled(eventType: EventType, approval: Approval, reason: string) {
  const resource = `approval:${approval.id}`;
  const policyName = approval.terms.policyNames[0] ?? null;
  const entry = draftEntry({ eventType, agentName: SERVICE, resource, result: 'allowed', policyName, reason });
  return succeeded(null, entry, [putRow('approval', approval)]);
}

/** Why the approval is void; null if it is valid. */
function whyVoid(state: BatchState, approval: Approval, digestOf: DigestOf): VoidCause | null {
  const { control } = state;
  const { agentId, agentName, action, path, basis } = approval;
  const holder = control.agentById(agentId) ?? control.operatorById(agentId);
  if (holder === null) return 'agent';
  const name: PrincipalName = isOperatorName(agentName) ? agentName : holder.name;
  const { status, terms } = approval;
  if (
    status === 'pending' &&
    countApprovers(control.operators(), approval, control.agentById(agentId)) < terms.quorum
  ) {
    return 'approvers';
  }
  const demanding = control.policies.findApprovalPolicies(name, action, path);
  const decision = decide(control.policies, name, action, path);
  if (!decision.allowed) return 'policies';
  const credential = state.credential(path);
  const binding = credential === null || action !== 'use' ? null : state.binding(credential);
  const policies = demanding.concat(control.policies.get(decision.policyName) ?? []);
  const now = digestOf(basisText({ policies, credentialId: credential?.id ?? null, binding, holder }));
  return now === basis ? null : 'basis';
}
