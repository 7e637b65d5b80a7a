/** The results of an operation for a caller and an auditor, in a form that the model can produce too. */

import assert from 'node:assert/strict';
import { resultFields } from '../../../src/core/denials.ts';
import type { Outcome } from '../../../src/core/operation.ts';
import type { PathRange } from '../../../src/core/pattern.ts';
import type { ShownOf } from '../../../src/engine/resource.ts';
import type { Agent } from '../../../src/vault/agents/agent.ts';
import type { EntryDraft } from '../../../src/vault/audit/audit-entry.ts';
import { type Credential, Secret } from '../../../src/vault/credentials/credential.ts';
import type { Metadata } from '../../../src/vault/credentials/credential-operations.ts';
import type { RetrievalResult } from '../../../src/vault/credentials/retrieve.ts';
import { type BulkRevocation, isWithinRetention, type Lease, statusOf } from '../../../src/vault/leases/lease.ts';
import type { Policy } from '../../../src/vault/policies/policy.ts';
import type { Simulation } from '../../../src/vault/policies/simulate.ts';
import type { Shelf } from './shelf.ts';
import type { Ask, World } from './world.ts';

/** The fields of an entry that the specification defines, without the reason. */
export function plainEntry(entry: EntryDraft | null) {
  if (entry === null) return null;
  const { eventType, agentName, resource, policyName, leaseId } = entry;
  const { result } = resultFields(entry);
  return { event: eventType, agent: agentName, resource, result, policy: policyName, lease: leaseId };
}

const plainPolicy = (policy: Policy) =>
  Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== null));
const plainCredential = ({ id, version, ...rest }: Credential) => ({ ...rest, newest: version });

function plainLease({ seq, agentId, credentialId, kind, tokenHash, ...lease }: Lease, now: number) {
  return { ...lease, status: statusOf(lease as Lease, now) };
}

/** The reply as the caller gets it; null for an error. */
export function observe({ command, now }: Ask, { response }: Outcome<unknown>, shelf: Shelf): unknown {
  if ('denial' in response) return null;
  if ('decrypt' in response) {
    const { content, reply } = response.decrypt;
    assert.ok(content instanceof Secret, 'the shelf keeps plain values');
    const { value, expiresAt } = reply(content) as RetrievalResult;
    return { value: value.reveal(), expiresAt };
  }
  const { reply } = response;
  switch (command.kind) {
    case 'createPolicy':
    case 'replacePolicy':
    case 'readPolicy':
      return plainPolicy(reply as Policy);
    case 'store':
      return plainCredential(reply as Credential);
    case 'look': {
      const { credential, versions } = reply as Metadata;
      return { ...plainCredential(credential), versions };
    }
    case 'list': {
      const isSeen = (path: string) => (reply as PathRange[]).some(({ from, to }) => from <= path && path < to);
      return shelf.credentials
        .map(({ path }) => path)
        .filter(isSeen)
        .sort();
    }
    case 'readLease':
    case 'renew': {
      const seen = reply as { lease: Lease; now: number };
      return plainLease(seen.lease, seen.now);
    }
    case 'simulate': {
      const { reason, ...simulated } = reply as ShownOf<typeof Simulation.fields>;
      return simulated;
    }
    case 'register': {
      const { publicKey, ...agent } = reply as Agent;
      return agent;
    }
    case 'revokeMany':
      return reply === null ? 0 : shelf.countEnded(reply as BulkRevocation);
    case 'listLeases': {
      const { agentId } = reply as { agentId: string | null };
      const own = shelf.leases().filter((lease) => agentId === null || lease.agentId === agentId);
      return own.filter((lease) => isWithinRetention(lease, now)).map(({ id }) => id);
    }
    default:
      return reply;
  }
}

/** The whole state after a batch. */
export function plainState({ control, shelf, now }: World) {
  const { credentials, sessions, spent } = shelf;
  return {
    agents: control.agents().map(({ publicKey, ...agent }) => agent),
    policies: control.policies.all().map(plainPolicy),
    credentials: credentials
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
      .map((credential) => ({
        ...plainCredential(credential),
        versions: shelf
          .versionsOf(credential.id)
          .map(({ content, ...version }) => ({ ...version, value: (content as Secret).reveal() })),
      })),
    sessions: sessions
      .filter(({ agentId }) => control.agentById(agentId) !== null)
      .map(({ tokenHash, agentId, expiresAt }) => ({ token: tokenHash, agentId, expiresAt })),
    leases: shelf.leases().map((lease) => plainLease(lease, now)),
    spent: [...spent],
  };
}
