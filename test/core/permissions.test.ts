// Who may cause which event, listed here a second time: a row of the permission table that changes is a decision.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EVENT_TYPES, PERMISSIONS } from '../../src/core/permissions.ts';

const BY_ROLE: Readonly<Record<string, readonly string[]>> = {
  viewer: [
    'agent.list',
    'agent.read',
    'approval.list',
    'approval.read',
    'approval.withdraw',
    'audit.checkpoint',
    'audit.export',
    'audit.list',
    'audit.proof',
    'audit.verify',
    'credential.list',
    'credential.tree',
    'exposure.read',
    'key.slot_list',
    'lease.list',
    'lease.read',
    'operator.list',
    'operator.passkey_add',
    'operator.passkey_remove',
    'operator.read',
    'policy.list',
    'policy.matrix',
    'policy.read',
    'policy.simulate',
    'service.read',
    'session.browser',
    'session.end',
    'session.handoff',
    'session.read',
    'session.renew',
    'target.read',
  ],
  approver: ['approval.approve', 'approval.deny'],
  editor: [
    'agent.deregister',
    'agent.panic',
    'agent.register',
    'agent.rotate',
    'credential.delete',
    'credential.retrieve',
    'credential.store',
    'lease.renew',
    'lease.revoke',
    'policy.create',
    'policy.delete',
    'policy.replace',
    'target.delete',
    'target.put',
  ],
  admin: [
    'audit.accept_rollback',
    'credential.use',
    'key.rotate',
    'key.rotate_audit',
    'key.rotate_root',
    'key.slot_add',
    'key.slot_remove',
    'key.slot_test',
    'lease.use',
    'operator.add',
    'operator.break_glass',
    'operator.invite',
    'operator.remove',
    'operator.replace',
    'operator.rotate',
    'service.backup',
    'service.lock',
    'service.panic',
  ],
};

const FOR_AGENTS = [
  'approval.list',
  'approval.read',
  'approval.withdraw',
  'credential.delete',
  'credential.list',
  'credential.retrieve',
  'credential.store',
  'credential.use',
  'lease.list',
  'lease.read',
  'lease.renew',
  'lease.revoke',
  'lease.use',
  'policy.simulate',
  'session.end',
  'session.read',
  'session.renew',
  'target.delete',
  'target.put',
  'target.read',
];

/** The events that only the server causes. */
const OF_SERVER = [
  'approval.request',
  'approval.timeout',
  'auth.verify',
  'credential.misuse',
  'credential.use_result',
  'key.retire',
  'service.backup_result',
  'service.restore',
  'service.start',
  'service.stop',
  'service.unlock',
];

const rows = Object.entries(PERMISSIONS).filter(([, row]) => row !== null);
const namesOf = (all: readonly (readonly [string, unknown])[]) => all.map(([name]) => name).sort();

test('each event needs the role that operators have agreed on', () => {
  for (const [role, names] of Object.entries(BY_ROLE)) {
    assert.deepEqual(namesOf(rows.filter(([, row]) => row.role === role)), names, role);
  }
});

test('an agent may cause only these events, and the token of a use lease only a brokered request', () => {
  assert.deepEqual(namesOf(rows.filter(([, { agents }]) => agents)), FOR_AGENTS);
  assert.deepEqual(namesOf(rows.filter(([, { leases }]) => leases === true)), ['credential.use']);
});

test('no caller may cause an event of the server', () => {
  const permitted = new Set(namesOf(rows));
  assert.deepEqual(EVENT_TYPES.filter((event) => !permitted.has(event)).sort(), OF_SERVER);
});
