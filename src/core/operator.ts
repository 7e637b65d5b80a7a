/**
 * Operators: the people who run a vault. Their roles decide what they may do, and policies for `operator:<name>` which
 * credentials an editor may touch. SOURCE: docs/operators.md.
 */
import type { EventType } from './audit.ts';
import { invalidRequest } from './errors.ts';
import type { ProviderIdentity } from './identity.ts';
import type { AgentId, OperatorName, PublicKey } from './names.ts';
import type { Passkey } from './passkey.ts';

export const ROLES = ['viewer', 'approver', 'editor', 'admin'] as const;
export type Role = (typeof ROLES)[number];

export interface Operator {
  /** Immutable, and of the same kind as agents' ids: sessions and leases are bound to either. */
  readonly id: AgentId;
  readonly name: OperatorName;
  readonly description: string;
  /** At least one, in the order of `ROLES`. */
  readonly roles: readonly Role[];
  /** Null if the operator does not log in with a key. */
  readonly publicKey: PublicKey | null;
  /** At least one; null if the operator has none. */
  readonly passkeys: readonly Passkey[] | null;
  /** At a provider of OpenID Connect; null if the operator does not sign in there. */
  readonly identity: ProviderIdentity | null;
  readonly addedAt: number;
  /** Sessions that began at this time or earlier have ended; null if none was ended this way. */
  readonly sessionsEndedAt: number | null;
}

/** @throws INVALID_REQUEST */
export function parseRoles(texts: readonly string[]): readonly Role[] {
  for (const [index, text] of texts.entries()) {
    if (!(ROLES as readonly string[]).includes(text)) {
      throw invalidRequest(`roles[${index}]`, `must be one of ${ROLES.join(', ')}`);
    }
  }
  if (texts.length === 0) throw invalidRequest('roles', 'must be an array of 1 or more roles');
  return ROLES.filter((role) => texts.includes(role));
}

/** The events that operators without the role admin may cause, by the role that they need. */
const ROLE_OF_EVENT: Partial<Readonly<Record<EventType, Role>>> = {
  'approval.list': 'viewer',
  // Its own; those of others need the role approver.
  'approval.read': 'viewer',
  'approval.withdraw': 'viewer',
  'agent.list': 'viewer',
  'agent.read': 'viewer',
  'audit.checkpoint': 'viewer',
  'audit.export': 'viewer',
  'audit.list': 'viewer',
  'audit.proof': 'viewer',
  'audit.verify': 'viewer',
  'credential.list': 'viewer',
  'exposure.read': 'viewer',
  'key.slot_list': 'viewer',
  'lease.list': 'viewer',
  'lease.read': 'viewer',
  'operator.list': 'viewer',
  // Its own; those of others need the role admin.
  'operator.passkey_add': 'viewer',
  'operator.passkey_remove': 'viewer',
  'operator.read': 'viewer',
  'policy.list': 'viewer',
  'policy.read': 'viewer',
  'policy.simulate': 'viewer',
  'service.read': 'viewer',
  'session.browser': 'viewer',
  'session.end': 'viewer',
  'session.handoff': 'viewer',
  'session.read': 'viewer',
  'session.renew': 'viewer',
  'target.read': 'viewer',
  'approval.approve': 'approver',
  'approval.deny': 'approver',
  'agent.deregister': 'editor',
  'agent.panic': 'editor',
  'agent.register': 'editor',
  'agent.rotate': 'editor',
  'credential.delete': 'editor',
  'credential.retrieve': 'editor',
  'credential.store': 'editor',
  'lease.renew': 'editor',
  'lease.revoke': 'editor',
  'policy.create': 'editor',
  'policy.delete': 'editor',
  'policy.replace': 'editor',
  'target.delete': 'editor',
  'target.put': 'editor',
};

/** The role that an operator needs for the event. */
export function roleFor(event: EventType): Role {
  return ROLE_OF_EVENT[event] ?? 'admin';
}

/** Every operator may view, and an admin may do everything. */
export function hasRole({ roles }: Pick<Operator, 'roles'>, role: Role): boolean {
  return role === 'viewer' || roles.includes(role) || roles.includes('admin');
}

/** Whether it has any of the ways to sign in. An e-mail address is one before the first sign-in binds it. */
export function canSignIn({ publicKey, passkeys, identity }: Operator): boolean {
  return publicKey !== null || identity !== null || (passkeys ?? []).length > 0;
}
