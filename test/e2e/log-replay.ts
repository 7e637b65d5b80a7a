/**
 * Replays the audit log over the values that the clients know, in the order of the log; the result is the expected
 * state of the service. The log has decisions and times, the calls have the values. Each decision is compared with the
 * policies at that entry of the log.
 */
import assert from 'node:assert/strict';
import type { AuditEntry } from '../../src/vault/audit/audit-entry.ts';
import type { Call } from './client-journal.ts';
import { principalOf, ttlMs } from './fixture.ts';

export interface KnownCredential {
  readonly type: string;
  readonly description: string;
  readonly createdAt: string;
  /** Oldest first. */
  readonly versions: readonly { readonly createdAt: string; readonly value: string }[];
  readonly retrievals: number;
}

/** The lease as the interface lists it. */
export type KnownLease = Readonly<Record<string, string | number | null>>;

/** How a response must appear in the log. */
const RESULTS: Readonly<Record<number, string>> = { 401: 'denied', 403: 'denied', 404: 'not_found', 409: 'denied' };

/** Finds the call of each entry. Fails for a call with a response and no entry, and for an entry without a call. */
export function explain(entries: readonly AuditEntry[], calls: readonly Call[]): Map<AuditEntry, Call> {
  const explained = new Map<AuditEntry, Call>();
  const byRequest = new Map(entries.map((entry) => [entry.request_id, entry]));
  const inFlight = new Set(calls.filter(({ answer, refusedAs }) => answer === null && refusedAs === null));
  for (const call of calls) {
    const entry = byRequest.get(call.refusedAs);
    if (call.answer === null && call.refusedAs !== null && entry !== undefined) explained.set(entry, call);
  }
  for (const call of calls) {
    if (call.answer === null) continue;
    const { status, headers, body } = call.answer;
    const entry = byRequest.get(headers.get('x-request-id'));
    assert.ok(entry, `acknowledged with ${status}, and lost: ${call.event} on ${call.resource} by ${call.agentName}`);
    assert.deepEqual(
      [entry.event_type, entry.agent_name, entry.resource, entry.result],
      [call.event, call.agentName, call.resource, RESULTS[status] ?? 'allowed'],
    );
    if (call.event === 'credential.retrieve') assert.equal(entry.lease_id, body.data?.lease_id ?? null);
    explained.set(entry, call);
  }
  for (const entry of entries) {
    if (entry.agent_name === 'service' || explained.has(entry)) continue;
    // Among a client's calls without a response, it is the last one that was sent before the decision.
    const call = [...inFlight].findLast(
      ({ event, agentName, resource, startedAt }) =>
        event === entry.event_type &&
        agentName === entry.agent_name &&
        resource === entry.resource &&
        startedAt <= Date.parse(entry.timestamp) + 1,
    );
    assert.ok(call, `entry ${entry.seq} has no call: ${entry.event_type} on ${entry.resource} by ${entry.agent_name}`);
    inFlight.delete(call);
    explained.set(entry, call);
  }
  return explained;
}

export class Replay {
  readonly credentials = new Map<string, KnownCredential>();
  /** The resources of each policy, by its name. */
  readonly policies = new Map<string, readonly string[]>();
  /** The public key of each agent by its name; null if the response did not arrive. */
  readonly agents = new Map<string, string | null>();
  readonly leases = new Map<string, KnownLease>();
  /** The sessions by token. */
  readonly sessions = new Map<string, { readonly agentName: string; readonly expiresAt: string }>();
  readonly endedSessions = new Set<string>();

  apply(entry: AuditEntry, call: Call): void {
    if (entry.event_type === 'credential.retrieve' && entry.agent_name !== 'admin') {
      assert.equal(entry.policy_name, this.#deciding(entry.agent_name, entry.resource), `entry ${entry.seq}`);
    }
    if (entry.result !== 'allowed') return;
    const name = entry.resource.slice(entry.resource.indexOf(':') + 1);
    switch (entry.event_type) {
      case 'credential.store':
        this.#store(entry, call);
        break;
      case 'credential.delete':
        this.credentials.delete(entry.resource);
        this.#revoke(entry, ({ path }) => path === entry.resource);
        break;
      case 'credential.retrieve':
        this.#retrieve(entry, call);
        break;
      case 'policy.create':
      case 'policy.replace':
        this.policies.set(name, call.resources ?? []);
        break;
      case 'policy.delete':
        this.policies.delete(name);
        break;
      case 'agent.register':
        this.agents.set(name, call.answer?.body.data.public_key ?? null);
        break;
      case 'agent.deregister':
        this.agents.delete(name);
        for (const [token, { agentName }] of this.sessions) if (agentName === name) this.#endSession(token);
        this.#revoke(entry, ({ agent_name }) => agent_name === name);
        break;
      case 'auth.verify':
        this.#logIn(name, call);
        break;
      case 'session.end':
        this.#endSession(call.token ?? '');
        break;
      case 'lease.renew': {
        const expires_at = later(entry.timestamp, ttlMs(entry.policy_name));
        this.#changeLease(name, { expires_at, policy_name: entry.policy_name });
        break;
      }
      case 'lease.revoke':
        if (call.path === undefined) this.#revoke(entry, ({ lease_id }) => lease_id === name);
        else this.#revokeMany(entry, call);
        break;
    }
  }

  /**
   * The policy with the smallest `max_ttl` of all that grant the agent this path, by the interface's rules, not by the
   * code under test.
   */
  #deciding(agent: string, path: string): string | null {
    const granting = [...this.policies]
      .filter(([name]) => agent.startsWith(principalOf(name).slice('agent:'.length, -1)))
      .filter(([, resources]) => resources.some((pattern) => fits(pattern, path)))
      .map(([name]) => name);
    return granting.sort((a, b) => ttlMs(a) - ttlMs(b))[0] ?? null;
  }

  #store({ resource, timestamp }: AuditEntry, { value = '', type, description }: Call): void {
    const before = this.credentials.get(resource);
    this.credentials.set(resource, {
      type: type ?? before?.type ?? 'generic',
      description: description ?? before?.description ?? '',
      createdAt: before?.createdAt ?? timestamp,
      versions: [...(before?.versions ?? []), { createdAt: timestamp, value }],
      retrievals: before?.retrievals ?? 0,
    });
  }

  #retrieve(entry: AuditEntry, { answer }: Call): void {
    const { resource, timestamp, lease_id, policy_name } = entry;
    const credential = this.credentials.get(resource);
    assert.ok(credential && lease_id, `entry ${entry.seq} leases a missing credential`);
    const expiresAt = later(timestamp, ttlMs(policy_name));
    if (answer !== null) {
      assert.equal(answer.body.data.value, credential.versions.at(-1)?.value, `the value leased by entry ${entry.seq}`);
      assert.equal(answer.body.data.expires_at, expiresAt);
    }
    this.credentials.set(resource, { ...credential, retrievals: credential.retrievals + 1 });
    this.leases.set(lease_id, {
      lease_id,
      agent_name: entry.agent_name,
      path: resource,
      version: credential.versions.length,
      policy_name,
      issued_at: timestamp,
      expires_at: expiresAt,
      revoked_at: null,
      status: 'active',
    });
  }

  /** A session whose token was lost with its response is in the store too, and cannot be queried. */
  #logIn(agentName: string, { answer }: Call): void {
    if (answer === null) return;
    const { session_id, expires_at } = answer.body.data;
    this.sessions.set(session_id, { agentName, expiresAt: expires_at });
  }

  #revokeMany(entry: AuditEntry, { path, answer }: Call): void {
    const before = this.#activeCount();
    this.#revoke(entry, (lease) => lease['agent_name'] === entry.agent_name && lease['path'] === path);
    const revoked = before - this.#activeCount();
    const isThere = path !== undefined && this.credentials.has(path);
    assert.equal(
      entry.reason,
      isThere ? `all active leases of ${entry.agent_name} revoked` : 'there were no leases to revoke',
    );
    if (answer !== null) assert.equal(answer.body.data.revoked, revoked);
  }

  #revoke({ timestamp }: AuditEntry, isMeant: (lease: KnownLease) => boolean): void {
    for (const [id, lease] of this.leases) {
      if (lease['status'] === 'active' && isMeant(lease))
        this.#changeLease(id, { revoked_at: timestamp, status: 'revoked' });
    }
  }

  #activeCount(): number {
    return [...this.leases.values()].filter(({ status }) => status === 'active').length;
  }

  #changeLease(id: string, change: KnownLease): void {
    const lease = this.leases.get(id);
    assert.ok(lease, `an entry names a lease that was not issued: ${id}`);
    this.leases.set(id, { ...lease, ...change });
  }

  #endSession(token: string): void {
    this.sessions.delete(token);
    this.endedSessions.add(token);
  }
}

function fits(pattern: string, path: string): boolean {
  return pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
}

function later(timestamp: string, milliseconds: number): string {
  return new Date(Date.parse(timestamp) + milliseconds).toISOString();
}
