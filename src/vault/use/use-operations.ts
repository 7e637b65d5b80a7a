/**
 * The operations of a brokered request. Its intent is decided and recorded before the first byte is sent to the
 * upstream. While it is active, it is checked again; its result has the id of its intent, and follows when the response
 * has ended.
 * SOURCE: docs/api.md, "Brokered use"; docs/decisions.md, "Brokered use".
 */

import type { Change } from '../../core/change.ts';
import * as grammar from '../../core/grammars.ts';
import { type AuthContext, actorName, identify } from '../../core/identity.ts';
import type { ActorName, EntryId, LeaseId } from '../../core/names.ts';
import {
  authReads,
  type Context,
  denied,
  type Operation,
  type OperationInput,
  type Outcome,
  operation,
  succeeded,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import { optional } from '../../engine/field.ts';
import { anyText, oneOf, text } from '../../engine/kinds.ts';
import { shape } from '../../engine/resource.ts';
import type { ApprovalId } from '../approvals/approval.ts';
import {
  type ApprovalAttempt,
  type ApprovalPending,
  approvalReads,
  requireApproval,
} from '../approvals/approval-requests.ts';
import { draftEntry, type UseFields } from '../audit/audit-entry.ts';
import { access, newLease } from '../credentials/access.ts';
import type { Secret } from '../credentials/credential.ts';
import { decryptVersion, findVersion } from '../credentials/retrieve.ts';
import { type Lease, statusOf } from '../leases/lease.ts';
import { givenTtlSeconds, type TtlSeconds } from '../policies/policy.ts';
import { type BaseUrlRequest, resolveRequest, useFieldsOf } from './base-url.ts';
import { METHOD, type Placement, type Target, type UseRequest } from './target.ts';
import { MAX_URL_LENGTH, PURPOSE, requestHeaders } from './upstream-url.ts';
import { canRedact, decideTarget, type TargetDenial, withoutNearest } from './use-decision.ts';

/** The body of a request to `/api/v1/use`. */
export const UseBody = shape(
  'UseRequest',
  {
    path: text(grammar.path),
    method: text(METHOD),
    url: anyText(
      {
        description:
          'An absolute URL that a target of the credential matches; or only its path, for the first such target.',
      },
      { maxLength: MAX_URL_LENGTH },
    ),
    headers: requestHeaders,
    body: optional(anyText({}, { maxLength: 2 * 1024 * 1024 })),
    bodyEncoding: optional(oneOf(['utf8', 'base64'], { wire: 'body_encoding', description: '`utf8` by default.' })),
    ttlSeconds: givenTtlSeconds,
    purpose: optional(text(PURPOSE)),
  },
  ({ body, bodyEncoding }) => {
    if (body === null) return bodyEncoding === null ? null : 'body_encoding: must not be given without body';
    const isCanonical = bodyEncoding !== 'base64' || Buffer.from(body, 'base64').toString('base64') === body;
    return isCanonical ? null : 'body: must be canonical base64';
  },
);

export interface BrokeredRequest {
  readonly path: CredentialPath;
  readonly request: UseRequest | BaseUrlRequest;
  /** Shortens the lease; at most the policy's TTL is granted. */
  readonly ttlSeconds: TtlSeconds | null;
  /** The purpose in the caller's words, for the audit log; null if the caller gave none. */
  readonly purpose: string | null;
}

/** A brokered request that was allowed and recorded. */
export interface AdmittedRequest {
  readonly entryId: EntryId;
  readonly leaseId: LeaseId;
  readonly expiresAt: number;
  readonly path: CredentialPath;
  readonly agentName: ActorName;
  readonly policyName: string;
  /** Id of the approval that admitted the request; null if it needed none. */
  readonly approvalId: ApprovalId | null;
  readonly request: UseRequest;
  /** The segment of the base URL in links to the same origin; null if the caller named the origin. */
  readonly selector: string | null;
  readonly target: Target;
  readonly placement: Placement;
  readonly value: Secret;
}

/**
 * Decides one brokered request. A session receives a lease for it; the token of a lease uses that lease. Replies
 * `ApprovalPending` if a policy requires an approval that the request does not have.
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

/** WHY recorded: a request with the token of a lease adds no lease from which the exposure could be counted. */
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

/**
 * The reason why a brokered request must be aborted; null if it may continue. The reason is not recorded here, because
 * the entry of the result states how the request ended. A request may continue while its caller and its lease are
 * valid, its targets and a policy allow it, and the approval that admitted it was not withdrawn.
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

/** Records how a brokered request ended. It decides nothing, because the response was already passed on. */
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
      // The lease of a session's request was issued for that request only.
      const revoked = { kind: 'revokeLease', id: leaseId, revokedAt: now } as const;
      return succeeded(null, entry, auth.kind !== 'lease' && isActive ? [revoked] : []);
    },
  };
}
