/**
 * Leases and bulk revocations. No timer ends a lease: its status follows from the clock and the revocations when it is
 * read.
 * SOURCE: docs/api.md, "Leases"; docs/decisions.md, "Leases".
 */
import type { ActorName, AgentId, CredentialId, LeaseId, TokenHash } from '../../core/names.ts';
import type { CredentialPath } from '../../core/path.ts';

/** A `retrieve` lease came with the value; a `use` lease works only through the vault. */
type LeaseKind = 'retrieve' | 'use';

export interface Lease {
  readonly id: LeaseId;
  readonly kind: LeaseKind;
  /**
   * A lease is bound to immutable ids, so that an agent or credential created again under the same name does not
   * inherit it.
   */
  readonly agentId: AgentId;
  readonly credentialId: CredentialId;
  readonly agentName: ActorName;
  readonly path: CredentialPath;
  readonly version: number;
  readonly policyName: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Set when this lease is revoked, or derived from the first bulk revocation that applies to it. */
  readonly revokedAt: number | null;
  /** The hash of the token that may be used instead of the holder's session; null for a lease without one. */
  readonly tokenHash: TokenHash | null;
  /** The sequence number of the audit entry that issued it. Bulk revocations with a higher one apply to it. */
  readonly seq: number;
}

/**
 * Revokes many leases with one record: all leases issued before entry `seq` to the agent, for the credential, or both,
 * of one kind or of any. Both ids are null for all leases.
 */
export interface BulkRevocation {
  readonly agentId: AgentId | null;
  readonly credentialId: CredentialId | null;
  /** Null for leases of any kind. */
  readonly kind: LeaseKind | null;
  readonly revokedAt: number;
  readonly seq: number;
}

export const LEASE_STATUSES = ['active', 'expired', 'revoked'] as const;
export type LeaseStatus = (typeof LEASE_STATUSES)[number];

/** Ended leases are listed for 7 days. */
export const ENDED_LEASE_RETENTION_MS = 7 * 24 * 3600 * 1000;

export const ADMIN_POLICY = 'builtin:admin';
export const VIEWER_POLICY = 'builtin:viewer';
export const ADMIN_LEASE_SECONDS = 3600;

export function statusOf(lease: Lease, now: number): LeaseStatus {
  if (lease.revokedAt !== null && lease.revokedAt <= lease.expiresAt) return 'revoked';
  return now >= lease.expiresAt ? 'expired' : 'active';
}

export function appliesTo(revocation: BulkRevocation, lease: Lease): boolean {
  return (
    lease.seq < revocation.seq &&
    (revocation.kind === null || revocation.kind === lease.kind) &&
    (revocation.agentId === null || revocation.agentId === lease.agentId) &&
    (revocation.credentialId === null || revocation.credentialId === lease.credentialId)
  );
}

/** The lease after the bulk revocation. A lease that was revoked or had expired before does not change. */
export function applyRevocation(lease: Lease, revocation: BulkRevocation): Lease {
  if (!appliesTo(revocation, lease) || lease.revokedAt !== null || revocation.revokedAt >= lease.expiresAt)
    return lease;
  return { ...lease, revokedAt: revocation.revokedAt };
}

export function isWithinRetention(lease: Lease, now: number): boolean {
  return Math.min(lease.expiresAt, lease.revokedAt ?? lease.expiresAt) > now - ENDED_LEASE_RETENTION_MS;
}

// Who has seen a version of a credential, and who has used it without seeing it. SOURCE: docs/decisions.md, "Exposure".

/** `retrieve`: seen; `use` and `token`: used, with a lease for that use or with the token of a use lease. */
type ExposureKind = LeaseKind | 'token';

export interface Exposure {
  readonly path: CredentialPath;
  /** Distinguishes credentials that had the same path. */
  readonly credentialId: CredentialId;
  readonly version: number;
  readonly kind: ExposureKind;
  /** WHY the name and not the id: agents that had the same name are one to the log and to operators. */
  readonly agentName: ActorName;
  /** Milliseconds since 1970. */
  readonly firstAt: number;
  readonly lastAt: number;
  readonly times: number;
}
