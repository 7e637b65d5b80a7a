/**
 * Brokered requests whose response has not ended: the check that they may continue, and the record of their end.
 * SOURCE: docs/decisions.md, "Brokered use".
 */
import { type Authentication, identify } from '../../core/identity.ts';
import type { LeaseId } from '../../core/names.ts';
import { type Context, callerReads, type Operation, succeeded } from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { ApprovalId } from '../approvals/approval.ts';
import { draftEntry, type UseFields } from '../audit/audit-entry.ts';
import { access } from '../credentials/access.ts';
import { statusOf } from '../leases/lease.ts';
import type { StartedUse } from './start-use.ts';
import type { UseRequest } from './target.ts';
import { decideTarget } from './use-decision.ts';

export interface RunningUse {
  readonly leaseId: LeaseId;
  readonly path: CredentialPath;
  readonly request: UseRequest;
  readonly approvalId: ApprovalId | null;
  readonly authentication: Authentication;
}

/**
 * Why a brokered request must be aborted; null if it may continue. Not recorded: the entry of its result says how it
 * ended. It may continue while its caller, its lease and its targets are what they were, a policy still grants it, and
 * the approval by which it passed was not withdrawn.
 */
export function checkUse({
  leaseId,
  path,
  request,
  approvalId,
  authentication,
}: RunningUse): Operation<'revoked' | 'expired' | null> {
  return {
    reads: {
      lease: leaseId,
      credential: path,
      targets: path,
      ...(approvalId === null ? {} : { approval: approvalId }),
      ...callerReads(authentication),
    },
    requester: { kind: 'service' },
    decide(known, { now }) {
      const lease = known.lease(leaseId);
      const status = lease === null ? 'revoked' : statusOf(lease, now);
      if (status !== 'active') return succeeded(status, null);
      const approval = approvalId === null ? null : known.approval(approvalId);
      if (approval?.status === 'withdrawn') return succeeded('revoked', null);
      const caller = identify(known, authentication, now);
      if ('code' in caller) return succeeded(caller.code === 'session_expired' ? 'expired' : 'revoked', null);
      const credential = known.credential(path);
      const binding = credential === null ? null : known.binding(credential);
      const isAllowed =
        access(known, caller, 'use', path).allowed && binding !== null && decideTarget(binding, request).allowed;
      return succeeded(isAllowed ? null : 'revoked', null);
    },
  };
}

export interface EndedUse {
  readonly started: Pick<StartedUse, 'entryId' | 'leaseId' | 'path' | 'agentName' | 'policyName'>;
  readonly context: Pick<Context, 'requestId' | 'remoteAddr'>;
  readonly result: Pick<UseFields, 'status' | 'bytes_in' | 'bytes_out' | 'redactions' | 'ended'>;
  /** Whether the lease was issued for this use only, which ends it. */
  readonly endsLease: boolean;
}

/** Records how a use ended. Nothing is decided: the upstream's answer has been passed on already. */
export function endUse({ started, context, result, endsLease }: EndedUse): Operation<null> {
  const { entryId, leaseId, path, agentName, policyName } = started;
  const entry = draftEntry({
    eventType: 'credential.use_result',
    agentName,
    resource: path,
    result: result.ended === 'failed' || result.ended === 'upstream' ? 'error' : 'allowed',
    policyName,
    leaseId,
    requestId: context.requestId,
    remoteAddr: context.remoteAddr,
    completes: entryId,
    use: result,
  });
  return {
    reads: { lease: leaseId },
    requester: { kind: 'service' },
    decide: (known, { now }) => {
      const lease = known.lease(leaseId);
      const isActive = lease !== null && statusOf(lease, now) === 'active';
      const revoked = { kind: 'revokeLease', id: leaseId, revokedAt: now } as const;
      return succeeded(null, entry, endsLease && isActive ? [revoked] : []);
    },
  };
}
