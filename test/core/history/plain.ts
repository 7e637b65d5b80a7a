/** The objects of the model, compared by identity, so that an agent registered again is a different one. */
import type { Command } from './commands.ts';

export interface Agent {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly registeredAt: number;
  readonly sessionsEndedAt: null;
  readonly formerPublicKey: null;
  readonly formerKeyUntil: null;
  readonly registeredBy: readonly ['admin'];
}

interface Version {
  readonly version: number;
  readonly createdAt: number;
  readonly type: string;
  readonly value: string;
}

export interface Credential {
  readonly path: string;
  readonly createdAt: number;
  type: string;
  description: string;
  updatedAt: number;
  accessCount: number;
  newest: number;
  versions: Version[];
}

export interface Lease {
  readonly id: string;
  readonly holder: Agent | 'admin';
  readonly credential: Credential;
  readonly version: number;
  readonly issuedAt: number;
  policyName: string;
  expiresAt: number;
  revokedAt: number | null;
}

export interface Session {
  readonly token: string;
  readonly agent: Agent;
  readonly expiresAt: number;
}

export interface Question {
  readonly command: Command;
  readonly now: number;
  /** A session's token, or `admin` for the administrator's. */
  readonly token: string;
  /** The name that the caller takes for its own. */
  readonly ownName: string;
  readonly lease: string;
  readonly fresh: string;
  readonly value: string;
  readonly challenge: { readonly id: string; readonly expiresAt: number; readonly wasIssuedToAgent: boolean };
  /** The id of the agent whose key signed its own challenge, or null. */
  readonly provenFor: string | null;
}

interface Entry {
  readonly event: string;
  readonly agent: string;
  readonly resource: string;
  readonly result: 'allowed' | 'denied' | 'not_found';
  readonly policy: string | null;
  readonly lease: string | null;
}

export interface Said {
  readonly code: string;
  readonly reply: unknown;
  readonly entry: Entry | null;
}

export type Caller = Session | 'admin';
export type Grant = { readonly policy: string; readonly seconds: number };

export function nameOf(who: Caller | Agent): string {
  if (who === 'admin') return 'admin';
  return 'agent' in who ? who.agent.name : who.name;
}

/** A response with its entry. */
export function recorded(agent: string, event: string, resource: string) {
  return (code: string, reply: unknown = null, { policy = null, lease = null }: Partial<Entry> = {}): Said => {
    const result = code === 'OK' ? 'allowed' : code === 'NOT_FOUND' ? 'not_found' : 'denied';
    return { code, reply, entry: { event, agent, resource, result, policy, lease } };
  };
}

export function unrecorded(code: string, reply: unknown = null): Said {
  return { code, reply, entry: null };
}

export function statusAt(lease: Lease, now: number): 'active' | 'expired' | 'revoked' {
  if (lease.revokedAt !== null) return 'revoked';
  return now >= lease.expiresAt ? 'expired' : 'active';
}

export function plainLease(lease: Lease, now: number) {
  const { holder, credential, ...rest } = lease;
  return { ...rest, agentName: nameOf(holder), path: credential.path, status: statusAt(lease, now) };
}

/** The credential as a reply has it, without the access count, which is read after the batch. */
export function plainCredential({ versions, accessCount, ...rest }: Credential) {
  return { ...rest };
}
