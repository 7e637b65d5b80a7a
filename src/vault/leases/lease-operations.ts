/** Reads, renews and revokes leases. An agent sees and changes only its leases. SOURCE: docs/decisions.md, "Leases". */

import type { BatchState } from '../../core/batch-state.ts';
import type { Identity } from '../../core/identity.ts';
import {
  type ActorName,
  ADMIN,
  ADMIN_ID,
  type AgentId,
  type AgentName,
  actorResource,
  isOperatorName,
  type LeaseId,
} from '../../core/names.ts';
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
import { access, credentialAltered, type Grantee, retrievalAccess } from '../credentials/access.ts';
import { hasRole } from '../operators/operator.ts';
import { type BulkRevocation, isWithinRetention, type Lease, statusOf } from './lease.ts';

/** Operators see all leases. */
function isOfOperators(identity: Identity): identity is Extract<Identity, { kind: 'admin' | 'operator' }> {
  return identity.kind === 'admin' || identity.kind === 'operator';
}

/** Null both for a lease of another agent and for one that does not exist. */
function findVisibleLease({ identity, state, moment }: OperationInput, id: LeaseId): Lease | null {
  const lease = state.lease(id);
  if (lease === null || !isWithinRetention(lease, moment.now)) return null;
  return isOfOperators(identity) || identity.agent.id === lease.agentId ? lease : null;
}

export interface LeaseAt {
  readonly lease: Lease;
  readonly now: number;
}

/** Not recorded. */
export function readLease(context: Context, id: LeaseId): Operation<LeaseAt> {
  const resource = `lease:${id}`;
  return operation({ context, permission: 'lease.read', resource, reads: { lease: id } }, (input) => {
    const lease = findVisibleLease(input, id);
    return lease === null
      ? rejected({ code: 'lease_not_found' }, null)
      : succeeded({ lease, now: input.moment.now }, null);
  });
}

/** Decides again from now, by the current policies, for the agent that holds the lease. */
export function renewLease(context: Context, id: LeaseId): Operation<LeaseAt> {
  const resource = `lease:${id}`;
  return operation({ context, permission: 'lease.renew', resource, reads: { lease: id } }, (input) => {
    const { identity, state, moment, entry } = input;
    const { now } = moment;
    const lease = findVisibleLease(input, id);
    if (lease === null) return denied(input, { code: 'lease_not_found' }, { leaseId: id });
    if (
      identity.kind === 'operator' &&
      !hasRole(identity.operator, 'admin') &&
      lease.agentId !== identity.operator.id
    ) {
      return denied(input, { code: 'renews_other' }, { leaseId: id });
    }
    const grantee = leaseGrantee(state, lease);
    if (statusOf(lease, now) !== 'active' || grantee === null)
      return denied(input, { code: 'lease_ended', status: statusOf(lease, now) }, { leaseId: id });
    const decision =
      lease.kind === 'retrieve'
        ? retrievalAccess(state, grantee, lease.path)
        : access(state, grantee, lease.kind, lease.path);
    if (!decision.allowed) return denied(input, decision.denial, { leaseId: id });
    const { policyName } = decision;
    const expiresAt = now + decision.ttlSeconds * 1000;
    return succeeded(
      { lease: { ...lease, expiresAt, policyName }, now },
      entry('allowed', { leaseId: id, policyName }),
      [{ kind: 'renewLease', id, expiresAt, policyName }],
    );
  });
}

function leaseGrantee({ control }: BatchState, lease: Lease): Grantee | null {
  if (lease.agentId === ADMIN_ID) return { kind: 'admin' };
  const agent = control.agentById(lease.agentId);
  if (agent !== null) return { kind: 'agent', agent };
  const operator = control.operatorById(lease.agentId);
  return operator === null ? null : { kind: 'operator', operator };
}

/** Idempotent: a lease that has already ended does not change. */
export function revokeLease(context: Context, id: LeaseId): Operation<null> {
  const resource = `lease:${id}`;
  return operation({ context, permission: 'lease.revoke', resource, reads: { lease: id } }, (input) => {
    const { moment, entry } = input;
    const lease = findVisibleLease(input, id);
    if (lease === null) return denied(input, { code: 'lease_not_found' }, { leaseId: id });
    if (statusOf(lease, moment.now) !== 'active') {
      return succeeded(null, entry('allowed', { leaseId: id, reason: 'the lease had ended already' }));
    }
    return succeeded(null, entry('allowed', { leaseId: id }), [{ kind: 'revokeLease', id, revokedAt: moment.now }]);
  });
}

export interface RevokeManyRequest {
  /** At least one of the two is given. */
  readonly agentName: ActorName | null;
  readonly path: CredentialPath | null;
}

/**
 * Revokes all active leases of the agent, of the path, or of both with one bulk revocation, which is the reply; the
 * caller counts its leases afterwards. Null if the agent or the path does not exist. An agent may revoke only its own
 * leases.
 */
export function revokeLeases(context: Context, request: RevokeManyRequest): Operation<BulkRevocation | null> {
  const { path, agentName: name } = request;
  const resource = path ?? (name === null ? '*' : actorResource(name));
  const keys = path === null ? {} : { credential: path };
  return operation({ context, permission: 'lease.revoke', resource, reads: keys }, (input) => {
    const { identity, state, moment, entry } = input;
    const { agentName } = request;
    if (identity.kind === 'agent' && agentName !== identity.agent.name) {
      return denied(input, { code: 'revokes_other' });
    }
    if (path !== null && state.isAltered(path)) return credentialAltered(input, null);
    const agentId = agentName === null ? null : agentIdOf(input, agentName);
    const credentialId = path === null ? null : (state.credential(path)?.id ?? null);
    if ((agentName !== null && agentId === null) || (path !== null && credentialId === null)) {
      return succeeded(null, entry('allowed', { reason: 'there were no leases to revoke' }));
    }
    const whose = path !== null && agentName !== null ? ` of ${agentName}` : '';
    const revocation: BulkRevocation = { agentId, credentialId, kind: null, revokedAt: moment.now, seq: moment.seq };
    const reason = `all active leases${whose} revoked`;
    return succeeded(revocation, entry('allowed', { reason }), [{ kind: 'revokeMatching', revocation }]);
  });
}

function agentIdOf({ state }: OperationInput, name: ActorName): AgentId | null {
  if (name === ADMIN) return ADMIN_ID;
  const principal = isOperatorName(name)
    ? state.control.operatorByName(name)
    : state.control.agentByName(name as AgentName);
  return principal?.id ?? null;
}

/** The id of the agent whose leases the caller may list, or null for all leases; not recorded. */
export function listLeases(context: Context): Operation<{ agentId: AgentId | null; now: number }> {
  return operation({ context, permission: 'lease.list', resource: '*' }, ({ identity, moment }) =>
    succeeded({ agentId: isOfOperators(identity) ? null : identity.agent.id, now: moment.now }, null),
  );
}
