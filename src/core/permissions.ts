/**
 * The events of the audit log and the permission table in one: for each event, the role with which an operator may
 * cause it, and whether an agent may. The decision checks it, and for a request that no agent may make also the server,
 * before it reads the body. The administrator has every permission. SOURCE: docs/operators.md, "Roles".
 */
import { hasRole, type Operator, type Role } from '../vault/operators/operator.ts';
import type { Denial } from './denials.ts';

interface PermissionRow {
  readonly role: Role;
  /** Whether an agent may cause the event itself, as far as the decision allows it. */
  readonly agents: boolean;
  /** Whether the token of a use lease is accepted too. */
  readonly leases?: true;
  /** The permission for one agent, which suffices for a request whose body names one. */
  readonly forOneAgent?: 'agent.panic';
}

/**
 * Views for operators over what agents read one by one. They differ from the event under which the audit log records
 * their denial.
 */
const EVENT_OF_VIEW = {
  'credential.tree': 'credential.list',
  'policy.matrix': 'policy.simulate',
} as const;

type View = keyof typeof EVENT_OF_VIEW;

/**
 * Null for an event that only the server causes. A read is recorded only if it was denied, except `credential.retrieve`
 * and `credential.list`.
 */
const TABLE = {
  'credential.retrieve': { role: 'editor', agents: true },
  'credential.list': { role: 'viewer', agents: true },
  'credential.tree': { role: 'viewer', agents: false },
  'credential.store': { role: 'editor', agents: true },
  'credential.delete': { role: 'editor', agents: true },
  'credential.use': { role: 'admin', agents: true, leases: true },
  'credential.use_result': null,
  'credential.misuse': null,
  'target.put': { role: 'editor', agents: true },
  'target.read': { role: 'viewer', agents: true },
  'target.delete': { role: 'editor', agents: true },
  'policy.create': { role: 'editor', agents: false },
  'policy.replace': { role: 'editor', agents: false },
  'policy.delete': { role: 'editor', agents: false },
  'policy.list': { role: 'viewer', agents: false },
  'policy.read': { role: 'viewer', agents: false },
  'policy.simulate': { role: 'viewer', agents: true },
  'policy.matrix': { role: 'viewer', agents: false },
  'agent.register': { role: 'editor', agents: false },
  'agent.deregister': { role: 'editor', agents: false },
  'agent.list': { role: 'viewer', agents: false },
  'agent.read': { role: 'viewer', agents: false },
  'agent.rotate': { role: 'editor', agents: false },
  'agent.panic': { role: 'editor', agents: false },
  'operator.add': { role: 'admin', agents: false },
  'operator.break_glass': { role: 'admin', agents: false },
  'operator.replace': { role: 'admin', agents: false },
  'operator.rotate': { role: 'admin', agents: false },
  'operator.remove': { role: 'admin', agents: false },
  'operator.invite': { role: 'admin', agents: false },
  // An operator's own passkeys; the decision demands the role admin for those of others.
  'operator.passkey_add': { role: 'viewer', agents: false },
  'operator.passkey_remove': { role: 'viewer', agents: false },
  'operator.list': { role: 'viewer', agents: false },
  'operator.read': { role: 'viewer', agents: false },
  'approval.request': null,
  'approval.approve': { role: 'approver', agents: false },
  'approval.deny': { role: 'approver', agents: false },
  // An operator's own requests; the decision demands the role approver for those of others.
  'approval.withdraw': { role: 'viewer', agents: true },
  'approval.read': { role: 'viewer', agents: true },
  'approval.list': { role: 'viewer', agents: true },
  'approval.timeout': null,
  'auth.verify': null,
  'session.browser': { role: 'viewer', agents: false },
  'session.end': { role: 'viewer', agents: true },
  'session.handoff': { role: 'viewer', agents: false },
  'session.renew': { role: 'viewer', agents: true },
  'session.read': { role: 'viewer', agents: true },
  'lease.list': { role: 'viewer', agents: true },
  'lease.read': { role: 'viewer', agents: true },
  'lease.renew': { role: 'editor', agents: true },
  'lease.use': { role: 'admin', agents: true },
  'lease.revoke': { role: 'editor', agents: true },
  'exposure.read': { role: 'viewer', agents: false },
  'audit.list': { role: 'viewer', agents: false },
  'audit.verify': { role: 'viewer', agents: false },
  'audit.export': { role: 'viewer', agents: false },
  'audit.checkpoint': { role: 'viewer', agents: false },
  'audit.proof': { role: 'viewer', agents: false },
  'audit.accept_rollback': { role: 'admin', agents: false },
  'service.read': { role: 'viewer', agents: false },
  'service.start': null,
  'service.stop': null,
  'service.panic': { role: 'admin', agents: false, forOneAgent: 'agent.panic' },
  'service.lock': { role: 'admin', agents: false },
  'service.unlock': null,
  'service.backup': { role: 'admin', agents: false },
  'service.backup_result': null,
  'service.restore': null,
  'key.slot_list': { role: 'viewer', agents: false },
  'key.slot_add': { role: 'admin', agents: false },
  'key.slot_remove': { role: 'admin', agents: false },
  'key.slot_test': { role: 'admin', agents: false },
  'key.rotate': { role: 'admin', agents: false },
  'key.rotate_root': { role: 'admin', agents: false },
  'key.rotate_audit': { role: 'admin', agents: false },
  'key.retire': null,
} as const satisfies Readonly<Record<string, PermissionRow | null>>;

export type EventType = Exclude<keyof typeof TABLE, View>;
export const EVENT_TYPES = Object.keys(TABLE).filter((name): name is EventType => !isView(name));

/** An event that a caller causes by a request, or a view. */
export type Permission = {
  [Name in keyof typeof TABLE]: (typeof TABLE)[Name] extends null ? never : Name;
}[keyof typeof TABLE];

export const PERMISSIONS: Readonly<Record<Permission, PermissionRow>> = TABLE;

/** The event under which the audit log records the request. */
export function eventOf(permission: Permission): EventType {
  return isView(permission) ? EVENT_OF_VIEW[permission] : permission;
}

function isView(name: string): name is View {
  return Object.hasOwn(EVENT_OF_VIEW, name);
}

export type PermissionIdentity =
  | { readonly kind: 'admin' | 'agent' | 'lease' }
  | { readonly kind: 'operator'; readonly operator: Pick<Operator, 'roles'> };

/** The denial of a caller that may not cause the event; null if it may, as far as the decision allows it. */
export function lackOfPermission(permission: Permission, identity: PermissionIdentity): Denial | null {
  const { role, agents, leases = false } = PERMISSIONS[permission];
  if (identity.kind === 'admin') return null;
  if (identity.kind === 'operator') {
    return hasRole(identity.operator, role) ? null : { code: 'role_required', role };
  }
  if (!agents) return { code: 'admin_only' };
  return identity.kind === 'lease' && !leases ? { code: 'use_token_only' } : null;
}
