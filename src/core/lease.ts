/**
 * Leases. What has ended is found by comparing with the clock and with revocation marks, never by a timer.
 * SOURCE: interface 2.2; decisions, "Leases".
 */
import type { ActorName, AgentId, CredentialId, LeaseId } from './names.ts';
import type { CredentialPath } from './path.ts';

export interface Lease {
  readonly id: LeaseId;
  /** Bound to the immutable ids, so that a name or a path that returns inherits nothing. */
  readonly agentId: AgentId;
  readonly credentialId: CredentialId;
  readonly agentName: ActorName;
  readonly path: CredentialPath;
  readonly version: number;
  readonly policyName: string;
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** Set by its own revocation, or derived from the first mark that covers it. */
  readonly revokedAt: number | null;
  /** The audit entry that issued it; marks of later entries cover it. */
  readonly seq: number;
}

/**
 * Ends many leases with one record: all that were issued before entry `seq` to the agent, for the credential, or for both.
 * At least one of the two ids is given.
 */
export interface BulkRevocation {
  readonly agentId: AgentId | null;
  readonly credentialId: CredentialId | null;
  readonly revokedAt: number;
  readonly seq: number;
}

export const LEASE_STATUSES = ['active', 'expired', 'revoked'] as const;
export type LeaseStatus = (typeof LEASE_STATUSES)[number];

/** Ended leases are listed for 7 days. */
export const ENDED_LEASE_RETENTION_MS = 7 * 24 * 3600 * 1000;

export const ADMIN_POLICY = 'builtin:admin';
export const ADMIN_LEASE_SECONDS = 3600;

export function statusOf(lease: Lease, now: number): LeaseStatus {
  if (lease.revokedAt !== null && lease.revokedAt <= lease.expiresAt) return 'revoked';
  return now >= lease.expiresAt ? 'expired' : 'active';
}

export function appliesTo(mark: BulkRevocation, lease: Lease): boolean {
  return (
    lease.seq < mark.seq &&
    (mark.agentId === null || mark.agentId === lease.agentId) &&
    (mark.credentialId === null || mark.credentialId === lease.credentialId)
  );
}

/** The lease as the mark leaves it: an earlier revocation stays, and what had expired before stays expired. */
export function applyRevocation(lease: Lease, mark: BulkRevocation): Lease {
  if (!appliesTo(mark, lease) || lease.revokedAt !== null || mark.revokedAt >= lease.expiresAt) return lease;
  return { ...lease, revokedAt: mark.revokedAt };
}

/** Whether an ended lease is still shown. */
export function isWithinRetention(lease: Lease, now: number): boolean {
  return Math.min(lease.expiresAt, lease.revokedAt ?? lease.expiresAt) > now - ENDED_LEASE_RETENTION_MS;
}
