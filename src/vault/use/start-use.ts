/**
 * Uses a credential without showing it. The intent is decided and recorded before the first byte goes upstream; the
 * result has the same entry id and follows when the response has ended.
 * SOURCE: docs/api.md, "Brokered use"; docs/decisions.md, "Brokered use".
 */

import type { Change } from '../../core/change.ts';
import { actorName } from '../../core/identity.ts';
import type { ActorName, EntryId, LeaseId } from '../../core/names.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  type Outcome,
  operation,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import type { ApprovalId } from '../approvals/approval.ts';
import {
  type ApprovalAttempt,
  type ApprovalPending,
  approvalReads,
  requireApproval,
} from '../approvals/approval-requests.ts';
import { access } from '../credentials/access.ts';
import type { Secret } from '../credentials/credential.ts';
import { decryptVersion, findVersion } from '../credentials/retrieve.ts';
import type { Lease } from '../leases/lease.ts';
import { newLease } from '../leases/lease-operations.ts';
import type { TtlSeconds } from '../policies/policy.ts';
import { type BaseUrlRequest, resolveRequest, useFieldsOf } from './base-url.ts';
import type { Placement, Target, UseRequest } from './target.ts';
import { canRedact, decideTarget, type TargetDenial, withoutNearest } from './use-decision.ts';

export interface BrokeredRequest {
  readonly path: CredentialPath;
  readonly request: UseRequest | BaseUrlRequest;
  /** Shortens the lease; at most the policy's TTL is granted. */
  readonly ttlSeconds: TtlSeconds | null;
  /** The caller's words for the audit log; null if it gave none. */
  readonly purpose: string | null;
}

/** A use that was allowed and recorded. */
export interface AdmittedRequest {
  readonly entryId: EntryId;
  readonly leaseId: LeaseId;
  readonly expiresAt: number;
  readonly path: CredentialPath;
  readonly agentName: ActorName;
  readonly policyName: string;
  /** Id of the approval by which the request passed; null if it needed none. */
  readonly approvalId: ApprovalId | null;
  readonly request: UseRequest;
  /** The segment of a base URL at which links to the same origin are; null if the caller named the origin. */
  readonly selector: string | null;
  readonly target: Target;
  readonly placement: Placement;
  readonly value: Secret;
}

/**
 * Decides one use. A session gets a lease for it; a lease's token uses that lease. Replies `ApprovalPending` where a
 * policy demands an approval that the request does not have.
 */
export function startUse(
  context: Context,
  asked: BrokeredRequest,
  attempt: ApprovalAttempt | null = null,
): Operation<AdmittedRequest | ApprovalPending> {
  const { path } = asked;
  return operation<AdmittedRequest | ApprovalPending>(
    {
      context,
      permission: 'credential.use',
      resource: path,
      reads: { credential: path, version: 'newest', targets: path, ...approvalReads(attempt) },
    },
    (plain) => {
      const stored = plain.state.credential(path);
      const binding = stored === null ? null : plain.state.binding(stored);
      const resolved = resolveRequest(binding?.allowedTargets ?? [], asked.request);
      const use = useFieldsOf(asked.request, resolved);
      const input: OperationInput = { ...plain, entry: (result, details) => plain.entry(result, { ...details, use }) };
      const { identity, state, moment, entry } = input;
      const decision = access(state, identity, 'use', path);
      if (!decision.allowed) return denied(input, decision.denial);
      const { policyName } = decision;
      const found = findVersion(input, path, null, policyName);
      if ('response' in found) return found;
      const { credential, version } = found;
      if (binding === null) return denied(input, { code: 'no_targets' }, { policyName });
      if ('code' in resolved) return denied(input, resolved, { policyName });
      const { request, selector } = resolved;
      const byTargets = decideTarget(binding, request);
      if (!byTargets.allowed) return deniedByTargets(input, policyName, path, byTargets.denial);
      const own = identity.kind === 'lease' ? identity.lease : null;
      if (own !== null && own.path !== path) return denied(input, { code: 'other_credential' }, { leaseId: own.id });
      const { purpose } = asked;
      const subject = {
        action: 'use' as const,
        path,
        policyName,
        credentialId: credential.id,
        binding,
        request,
        purpose,
      };
      const approval = requireApproval(input, subject, attempt);
      if ('response' in approval) return approval;
      const ttlSeconds = Math.min(decision.ttlSeconds, asked.ttlSeconds ?? decision.ttlSeconds);
      const lease = own ?? newLease(input, 'use', credential, version.version, policyName, ttlSeconds, null);
      const { id: leaseId, expiresAt } = lease;
      const { entryId } = moment;
      const agentName = actorName(identity);
      const { placement } = binding;
      const { target } = byTargets;
      const placed = { request, selector, target, placement };
      const { approvalId } = approval;
      const admitted = { entryId, leaseId, expiresAt, path, agentName, policyName, approvalId, ...placed };
      const rejectShort = (value: Secret): Outcome<never> | null =>
        canRedact(value, placement) ? null : denied(input, { code: 'value_too_short' }, { policyName });
      return {
        response: {
          decrypt: decryptVersion(input, found, policyName, (value) => ({ ...admitted, value }), rejectShort),
        },
        entry: entry('allowed', { policyName, leaseId, reason: describeUse(purpose, approval.reason) }),
        changes: [
          ...approval.changes,
          own === null ? { kind: 'addLease', lease } : useOfToken(lease, version.version, moment.now),
        ],
      };
    },
  );
}

/** The caller's words are last and quoted, so that they cannot claim an approval. */
function describeUse(purpose: string | null, approved: string | null): string | null {
  const quoted = purpose === null ? null : `purpose: ${JSON.stringify(purpose)}`;
  return approved === null || quoted === null ? (approved ?? quoted) : `${approved}; ${quoted}`;
}

/** A use with the token of a lease adds no lease, from which it could be counted. */
function useOfToken({ path, credentialId, agentName }: Lease, version: number, now: number): Change {
  const exposure = {
    path,
    credentialId,
    version,
    kind: 'token' as const,
    agentName,
    firstAt: now,
    lastAt: now,
    times: 1,
  };
  return { kind: 'addExposure', exposure };
}

/** Names the nearest target only to callers who may list, as `GET /targets` does. */
function deniedByTargets(
  input: OperationInput,
  policyName: string,
  path: CredentialPath,
  denial: TargetDenial,
): Outcome<never> {
  const mayRead = access(input.state, input.identity, 'list', path).allowed;
  return denied(input, mayRead ? denial : withoutNearest(denial), { policyName });
}
