/**
 * Leases and bulk revocations. No timer ends a lease: its status follows from the clock and the revocations when it is
 * read.
 * SOURCE: docs/api.md, "Leases"; docs/decisions.md, "Leases".
 */
import * as grammar from '../../core/grammars.ts';
import type { AgentId, CredentialId, LeaseId, TokenHash } from '../../core/names.ts';
import { PAGE } from '../../core/page.ts';
import { internal, nullable, optional, type ReplyOf, type ValueOf } from '../../engine/field.ts';
import { count, oneOf, positive, text, time } from '../../engine/kinds.ts';
import { shape, stored } from '../../engine/resource.ts';

/** A `retrieve` lease came with the value; a `use` lease works only through the vault. */
export const LEASE_KINDS = ['retrieve', 'use'] as const;
type LeaseKind = (typeof LEASE_KINDS)[number];

export const LEASE_STATUSES = ['active', 'expired', 'revoked'] as const;
export type LeaseStatus = (typeof LEASE_STATUSES)[number];

const POLICY = grammar.matching(
  /^(?:builtin:[a-z]+|[A-Za-z0-9][A-Za-z0-9._-]{0,127})$/,
  [1, 128],
  'must be the name of a policy',
);

/** The only list of the columns of a lease. */
const FIELDS = {
  /** The sequence number of the audit entry that issued it. Bulk revocations with a higher number apply to it. */
  seq: internal(positive()),
  id: text(grammar.id<LeaseId>(), { wire: 'lease_id' }),
  kind: internal(oneOf(LEASE_KINDS)),
  /**
   * A lease is bound to immutable ids, so that an agent or credential created again under the same name does not
   * inherit it.
   */
  agentId: internal(text(grammar.holderId)),
  credentialId: internal(text(grammar.id<CredentialId>())),
  agentName: text(grammar.actorName, { wire: 'agent_name' }),
  path: text(grammar.path),
  version: positive(),
  policyName: text(POLICY, { wire: 'policy_name' }),
  issuedAt: time({ wire: 'issued_at' }),
  expiresAt: time({ wire: 'expires_at' }),
  /** Set when this lease is revoked, or derived from the first bulk revocation that applies to it. */
  revokedAt: nullable(time({ wire: 'revoked_at' })),
  /** The hash of the token that may be used instead of the holder's session; null for a lease without one. */
  tokenHash: internal(nullable(text(grammar.hash<TokenHash>()))),
};
export const LEASE_ROWS = stored({ table: 'leases', key: ['seq'], fields: FIELDS });
export type Lease = ValueOf<typeof FIELDS>;

export const ListedLease = shape('Lease', { ...FIELDS, status: oneOf(LEASE_STATUSES) });

export const LeasesQuery = shape('LeasesQuery', {
  agentName: optional(text(grammar.actorName, { wire: 'agent' })),
  path: optional(FIELDS.path),
  status: optional(oneOf(LEASE_STATUSES)),
  ...PAGE,
});
export const RevokeRequest = shape(
  'RevokeRequest',
  { agentName: LeasesQuery.fields.agentName, path: LeasesQuery.fields.path },
  ({ agentName, path }) => (agentName === null && path === null ? 'agent: is required, or path, or both' : null),
);
export const RevokedLeases = shape('RevokeResponse', { revoked: count() });

/** Makes the reply about a lease, with its status at the time `now`. */
export const toLeaseReply =
  (now: number) =>
  (lease: Lease): ReplyOf<typeof ListedLease.fields> =>
    ListedLease.toReply({ ...lease, status: statusOf(lease, now) });

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

/** Ends all leases of an agent or operator, or all leases for null. */
export function allLeasesOf(agentId: AgentId | null, { now, seq }: { now: number; seq: number }): BulkRevocation {
  return { agentId, credentialId: null, kind: null, revokedAt: now, seq };
}

/** An empty text stands for null. */
export const REVOCATION_ROWS = stored({
  table: 'bulk_revocations',
  key: ['seq'],
  fields: {
    seq: positive(),
    agentId: text(grammar.or('', grammar.holderId)),
    credentialId: text(grammar.or('', grammar.id<CredentialId>())),
    kind: oneOf(['', ...LEASE_KINDS]),
    revokedAt: time(),
  },
});

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
