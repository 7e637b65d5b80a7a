/**
 * What ends an approval without an answer: its time, and changes of what it relies on. SOURCE: docs/approvals.md.
 */
import { type Approval, type ApprovalId, basisText, countApprovers, describeTimeout } from '../approval.ts';
import type { EntryDraft, EventType } from '../audit.ts';
import type { BatchState } from '../batch-state.ts';
import { decide } from '../decision.ts';
import { type ActorName, isOperatorName, type PrincipalName, SERVICE } from '../names.ts';
import { type Operation, succeeded } from '../operation.ts';
import type { CredentialPath } from '../path.ts';

/** An approval, and the path of its credential, with whose targets it is loaded. */
export interface ApprovalPlace {
  readonly id: ApprovalId;
  readonly path: CredentialPath;
}

export type DigestOf = (text: string) => string;

export function readsOf({ id, path }: ApprovalPlace) {
  return { approval: id, credential: path, usage: true as const };
}

/** The approval without any effect from now on. */
export function endApproval(
  approval: Approval,
  status: 'denied' | 'timed_out' | 'withdrawn',
  endedBy: ActorName,
  reason: string | null,
  now: number,
): Approval {
  return { ...approval, status, endedBy, endedAt: now, reason, usesLeft: null, grantEndsAt: null };
}

/**
 * Records that an approval timed out, or lost what it relied on. The service runs it: until then the time and the
 * comparison at each use decide the same.
 */
export function settleApproval(place: ApprovalPlace, digestOf: DigestOf): Operation<null> {
  return {
    reads: readsOf(place),
    requester: { kind: 'service' },
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
      const voided = whyVoid(state, approval, digestOf);
      const isLive = isPending || (now < (approval.grantEndsAt ?? 0) && approval.usesLeft !== 0);
      if (voided === null || !isLive) return succeeded(null, null);
      return settled('approval.withdraw', endApproval(approval, 'withdrawn', SERVICE, voided, now), voided);
    },
  };
}

/** Recorded as what the service itself did. */
function settled(eventType: EventType, approval: Approval, reason: string) {
  const { id, terms } = approval;
  const entry: EntryDraft = {
    eventType,
    agentName: SERVICE,
    resource: `approval:${id}`,
    result: 'allowed',
    policyName: terms.policyNames[0] ?? null,
    leaseId: null,
    reason,
    requestId: null,
    remoteAddr: null,
  };
  return succeeded(null, entry, [{ kind: 'putApproval' as const, approval }]);
}

/** Why the answer would be about something else by now; null if it would not. */
export function whyVoid(state: BatchState, approval: Approval, digestOf: DigestOf): string | null {
  const { control } = state;
  const { agentId, agentName, action, path, basis } = approval;
  const holder = control.agentById(agentId) ?? control.operatorById(agentId);
  if (holder === null) return 'the agent was deregistered';
  const name: PrincipalName = isOperatorName(agentName) ? agentName : holder.name;
  const { status, terms } = approval;
  if (
    status === 'pending' &&
    countApprovers(control.operators(), approval, control.agentById(agentId)) < terms.quorum
  ) {
    return 'fewer operators can approve it than the policy demands';
  }
  const demanding = control.policies.findApprovalPolicies(name, action, path);
  const decision = decide(control.policies, name, action, path);
  if (!decision.allowed) return 'no policy grants the request any more';
  const credential = state.credential(path);
  const usage = credential === null || action !== 'use' ? null : state.usage(credential);
  const policies = demanding.concat(control.policies.get(decision.policyName) ?? []);
  const now = digestOf(basisText({ policies, credentialId: credential?.id ?? null, usage, holder }));
  if (now === basis) return null;
  return 'its policies, credential or targets or the key of the agent changed, or a panic ended the access of the agent';
}
