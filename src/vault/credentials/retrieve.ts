/**
 * Retrieves a value and issues a lease.
 * SOURCE: docs/api.md, "Credentials" and "Errors"; docs/decisions.md, "Credentials" and "Policies".
 */

import type { LeaseId } from '../../core/names.ts';
import {
  type Context,
  denied,
  type Operation,
  type OperationInput,
  type Outcome,
  operation,
  type PendingDecryption,
} from '../../core/operation.ts';
import type { CredentialPath } from '../../core/path.ts';
import {
  type ApprovalAttempt,
  type ApprovalPending,
  approvalReads,
  requireApproval,
} from '../approvals/approval-requests.ts';
import type { TtlSeconds } from '../policies/policy.ts';
import { credentialAltered, credentialNotFound, newLease, retrievalAccess } from './access.ts';
import { type Credential, type CredentialVersion, isKept, type Secret } from './credential.ts';

export interface RetrieveRequest {
  readonly path: CredentialPath;
  /** Null for the newest. */
  readonly version: number | null;
  /** Shortens the lease; at most the policy's TTL is granted. */
  readonly ttlSeconds: TtlSeconds | null;
}

export interface RetrievalResult {
  readonly path: CredentialPath;
  readonly value: Secret;
  readonly leaseId: LeaseId;
  readonly expiresAt: number;
}

export interface FoundVersion {
  readonly credential: Credential;
  readonly version: CredentialVersion;
}

/** The version with the number, or the newest for null; or the outcome for a caller with a grant on the path. */
export function findVersion(
  input: OperationInput,
  path: CredentialPath,
  number: number | null,
  policyName: string,
): FoundVersion | Outcome<never> {
  const { state } = input;
  if (state.isAltered(path)) return credentialAltered(input, policyName);
  const credential = state.credential(path);
  if (credential === null) return credentialNotFound(input, policyName);
  const wanted = number ?? credential.version;
  const version = isKept(wanted, credential, state.settings.versionsKept)
    ? state.loaded.version(credential.id, wanted)
    : null;
  if (version !== null) return { credential, version };
  return denied(input, { code: number === null ? 'value_missing' : 'version_not_found' }, { policyName });
}

/** Decrypts the version and replies with its value, unless `reject` has an outcome for that. */
export function decryptVersion<R>(
  input: OperationInput,
  { credential, version }: FoundVersion,
  policyName: string,
  reply: (value: Secret) => R,
  reject: ((value: Secret) => Outcome<never> | null) | null = null,
): PendingDecryption<R> {
  // The newest version's type is read from the credential's row, so that an edit of that row is detected.
  const type = version.version === credential.version ? credential.type : version.type;
  return {
    content: version.content,
    associatedData: { credentialId: credential.id, path: credential.path, type, version: version.version },
    onFailure: () => denied(input, { code: 'value_altered' }, { policyName }),
    ...(reject === null ? {} : { reject }),
    reply,
  };
}

/** The version as operators read it; null for the newest one. */
export function nameVersion({ version }: RetrieveRequest): string | null {
  return version == null ? null : `version ${version}`;
}

/** Replies `ApprovalPending` where a policy demands an approval that the request does not have. */
export function retrieve(
  context: Context,
  request: RetrieveRequest,
  ask: ApprovalAttempt | null = null,
): Operation<RetrievalResult | ApprovalPending> {
  const { path } = request;
  const keys = { credential: path, version: request.version ?? ('newest' as const), ...approvalReads(ask) };
  return operation<RetrievalResult | ApprovalPending>(
    { context, permission: 'credential.retrieve', resource: path, reads: keys },
    (input) => {
      const { identity, state, entry } = input;
      const decision = retrievalAccess(state, identity, path);
      if (!decision.allowed) return denied(input, decision.denial);
      const { policyName } = decision;
      const found = findVersion(input, path, request.version, policyName);
      if ('response' in found) return found;
      const { credential, version } = found;
      const subject = {
        action: 'retrieve' as const,
        path,
        policyName,
        credentialId: credential.id,
        binding: null,
        request: null,
        purpose: nameVersion(request),
      };
      const approval = requireApproval(input, subject, ask);
      if ('response' in approval) return approval;
      const ttlSeconds = Math.min(decision.ttlSeconds, request.ttlSeconds ?? decision.ttlSeconds);
      const lease = newLease(input, 'retrieve', credential, version.version, policyName, ttlSeconds, null);
      const { id: leaseId, expiresAt } = lease;
      return {
        response: {
          decrypt: decryptVersion(input, found, policyName, (value) => ({ path, value, leaseId, expiresAt })),
        },
        entry: entry('allowed', { policyName, leaseId, reason: approval.reason }),
        changes: [
          ...approval.changes,
          { kind: 'addLease', lease },
          { kind: 'incrementAccessCount', credentialId: credential.id },
        ],
      };
    },
  );
}
