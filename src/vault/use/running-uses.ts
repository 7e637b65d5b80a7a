/**
 * Brokered requests whose response has not ended: the check that they may continue, and the record of their end.
 * SOURCE: docs/decisions.md, "Brokered use".
 */
import { type AuthContext, identify } from '../../core/identity.ts';
import { authReads, type Context, type Operation, succeeded } from '../../core/operation.ts';
import { draftEntry, type UseFields } from '../audit/audit-entry.ts';
import { access } from '../credentials/access.ts';
import { statusOf } from '../leases/lease.ts';
import type { AdmittedRequest } from './start-use.ts';
import { decideTarget } from './use-decision.ts';

/**
 * Why a brokered request must be aborted; null if it may continue. Not recorded: the entry of its result says how it
 * ended. It may continue while its caller, its lease and its targets are what they were, a policy still grants it, and
 * the approval by which it passed was not withdrawn.
 */
export function checkUse(
  { leaseId, path, request, approvalId }: Pick<AdmittedRequest, 'leaseId' | 'path' | 'request' | 'approvalId'>,
  auth: AuthContext,
): Operation<'revoked' | 'expired' | null> {
  return {
    reads: {
      lease: leaseId,
      credential: path,
      targets: path,
      ...(approvalId === null ? {} : { approval: approvalId }),
      ...authReads(auth),
    },
    auth: { kind: 'service' },
    decide(known, { now }) {
      const lease = known.lease(leaseId);
      const status = lease === null ? 'revoked' : statusOf(lease, now);
      if (status !== 'active') return succeeded(status, null);
      const approval = approvalId === null ? null : known.approval(approvalId);
      if (approval?.status === 'withdrawn') return succeeded('revoked', null);
      const identity = identify(known, auth, now);
      if ('code' in identity) return succeeded(identity.code === 'session_expired' ? 'expired' : 'revoked', null);
      const credential = known.credential(path);
      const binding = credential === null ? null : known.binding(credential);
      const isAllowed =
        access(known, identity, 'use', path).allowed && binding !== null && decideTarget(binding, request).allowed;
      return succeeded(isAllowed ? null : 'revoked', null);
    },
  };
}

/** Records how a brokered request ended. Nothing is decided: the response of the upstream was passed on. */
export function endUse(
  admitted: Pick<AdmittedRequest, 'entryId' | 'leaseId' | 'path' | 'agentName' | 'policyName'>,
  { auth, requestId, remoteAddr }: Pick<Context, 'auth' | 'requestId' | 'remoteAddr'>,
  result: Pick<UseFields, 'status' | 'bytes_in' | 'bytes_out' | 'redactions' | 'ended'>,
): Operation<null> {
  const { entryId, leaseId, path, agentName, policyName } = admitted;
  const entry = draftEntry({
    eventType: 'credential.use_result',
    agentName,
    resource: path,
    result: result.ended === 'failed' || result.ended === 'upstream' ? 'error' : 'allowed',
    policyName,
    leaseId,
    requestId,
    remoteAddr,
    completes: entryId,
    use: result,
  });
  return {
    reads: { lease: leaseId },
    auth: { kind: 'service' },
    decide: (known, { now }) => {
      const lease = known.lease(leaseId);
      const isActive = lease !== null && statusOf(lease, now) === 'active';
      // A session gets a lease for this request only.
      const revoked = { kind: 'revokeLease', id: leaseId, revokedAt: now } as const;
      return succeeded(null, entry, auth.kind !== 'lease' && isActive ? [revoked] : []);
    },
  };
}
