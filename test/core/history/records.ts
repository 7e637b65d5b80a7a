/** The model's state, in lists, and the rules that several operations share. */
import { decidePlainly, type PlainPolicy } from '../reference.ts';
import {
  type Agent,
  type Caller,
  type Credential,
  type Grant,
  type Lease,
  nameOf,
  plainLease,
  type Session,
  statusAt,
} from './plain.ts';

const WEEK = 7 * 24 * 60 * 60 * 1000;

export class Records {
  agents: Agent[] = [];
  policies: PlainPolicy[] = [];
  credentials: Credential[] = [];
  leases: Lease[] = [];
  sessions: Session[] = [];
  spent: string[] = [];
  protected readonly settings: { readonly adminMayRetrieve: boolean; readonly versionsKept: number };

  constructor(settings: { readonly adminMayRetrieve: boolean; readonly versionsKept: number }) {
    this.settings = settings;
  }

  protected grant(caller: Caller | Agent, action: string, path: string): Grant | null {
    if (caller === 'admin') {
      const isTakenAway = action === 'retrieve' && !this.settings.adminMayRetrieve;
      return isTakenAway ? null : { policy: 'builtin:admin', seconds: 3600 };
    }
    const policy = decidePlainly(this.policies, nameOf(caller), action, path);
    return policy && { policy: policy.name, seconds: policy.maxTtlSeconds };
  }

  /** Ended leases are shown for a week; to an agent another's lease is none. */
  protected isVisible(lease: Lease, caller: Caller, now: number): boolean {
    const endedAt = Math.min(lease.expiresAt, lease.revokedAt ?? lease.expiresAt);
    return now < endedAt + WEEK && (caller === 'admin' || caller.agent === lease.holder);
  }

  /** Revokes the active leases among them; returns how many. */
  protected revokeAll(isMeant: (lease: Lease) => boolean, now: number): number {
    const meant = this.leases.filter((lease) => isMeant(lease) && statusAt(lease, now) === 'active');
    for (const lease of meant) lease.revokedAt = now;
    return meant.length;
  }

  /** All that is known. */
  state(now: number) {
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    return {
      agents: this.agents.toSorted(byName),
      policies: this.policies.toSorted(byName),
      credentials: this.credentials
        .toSorted((a, b) => (a.path < b.path ? -1 : 1))
        .map((credential): Credential => ({ ...credential })),
      sessions: this.sessions.map(({ token, agent, expiresAt }) => ({ token, agentId: agent.id, expiresAt })),
      leases: this.leases.map((lease) => plainLease(lease, now)),
      spent: this.spent,
    };
  }
}
