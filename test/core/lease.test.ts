// When a lease has ended, and which leases a bulk revocation ends. SOURCE: docs/decisions.md, "Leases".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  appliesTo,
  applyRevocation,
  type BulkRevocation,
  isWithinRetention,
  type Lease,
  statusOf,
} from '../../src/core/lease.ts';
import type { AgentId, AgentName, CredentialId, LeaseId } from '../../src/core/names.ts';
import { parsePath } from '../../src/core/path.ts';

const ISSUED = 1_000_000;
const EXPIRES = ISSUED + 10_000;
const DAY = 24 * 3600 * 1000;
const [ANN, BOB] = ['ann-id', 'bob-id'] as [AgentId, AgentId];
const [DB, WEB] = ['db-id', 'web-id'] as [CredentialId, CredentialId];

const LEASE: Lease = {
  id: '0190c5f2-7e3a-7b1c-8d2e-0123456789ab' as LeaseId,
  agentId: ANN,
  credentialId: DB,
  agentName: 'ann' as AgentName,
  path: parsePath('prod/db'),
  version: 1,
  policyName: 'p',
  issuedAt: ISSUED,
  expiresAt: EXPIRES,
  revokedAt: null,
  kind: 'retrieve',
  tokenHash: null,
  seq: 7,
};

const STATUSES: readonly [revokedAt: number | null, now: number, status: string][] = [
  [null, ISSUED, 'active'],
  [null, EXPIRES - 1, 'active'],
  [null, EXPIRES, 'expired'],
  [null, EXPIRES + DAY, 'expired'],
  [ISSUED, ISSUED, 'revoked'],
  [ISSUED + 5, ISSUED + 5, 'revoked'],
  [ISSUED + 5, EXPIRES + DAY, 'revoked'],
];

for (const [revokedAt, now, status] of STATUSES) {
  const revoked = revokedAt === null ? 'not revoked' : `revoked ${revokedAt - ISSUED} ms after its issue`;
  test(`${now - ISSUED} ms after its issue a lease of 10 s, ${revoked}, is ${status}`, () => {
    assert.equal(statusOf({ ...LEASE, revokedAt }, now), status);
  });
}

const mark = (fields: Partial<BulkRevocation>): BulkRevocation => ({
  agentId: null,
  credentialId: null,
  kind: null,
  revokedAt: ISSUED + 5000,
  seq: 8,
  ...fields,
});

const MARKS: readonly [what: string, fields: Partial<BulkRevocation>, isCovered: boolean][] = [
  ['its agent', { agentId: ANN }, true],
  ['its credential', { credentialId: DB }, true],
  ['both its agent and its credential', { agentId: ANN, credentialId: DB }, true],
  ['another agent', { agentId: BOB }, false],
  ['another credential', { credentialId: WEB }, false],
  ['its agent and another credential', { agentId: ANN, credentialId: WEB }, false],
  ['another agent and its credential', { agentId: BOB, credentialId: DB }, false],
  ['its agent, of the entry that issued it', { agentId: ANN, seq: 7 }, false],
  ['its agent, of an entry before', { agentId: ANN, seq: 6 }, false],
];

for (const [what, fields, isCovered] of MARKS) {
  test(`a bulk revocation for ${what} ${isCovered ? 'ends' : 'leaves'} the lease`, () => {
    const revocation = mark(fields);
    assert.equal(appliesTo(revocation, LEASE), isCovered);
    const after = applyRevocation(LEASE, revocation);
    assert.deepEqual(after, { ...LEASE, revokedAt: isCovered ? ISSUED + 5000 : null });
    assert.equal(statusOf(after, ISSUED + 5000), isCovered ? 'revoked' : 'active');
  });
}

test('a later revocation does not change the first one', () => {
  const once = applyRevocation(LEASE, mark({ agentId: ANN }));
  assert.deepEqual(applyRevocation(once, mark({ credentialId: DB, seq: 9, revokedAt: ISSUED + 6000 })), once);
});

test('a lease that expired before a bulk revocation stays expired', () => {
  for (const revokedAt of [EXPIRES, EXPIRES + 1]) {
    const after = applyRevocation(LEASE, mark({ agentId: ANN, revokedAt }));
    assert.equal(statusOf(after, EXPIRES + DAY), 'expired');
    assert.equal(after.revokedAt, null);
  }
  assert.equal(
    statusOf(applyRevocation(LEASE, mark({ agentId: ANN, revokedAt: EXPIRES - 1 })), EXPIRES + DAY),
    'revoked',
  );
});

test('an ended lease is listed for 7 days after its end, the earlier of expiry and revocation', () => {
  assert.equal(isWithinRetention(LEASE, ISSUED), true);
  assert.equal(isWithinRetention(LEASE, EXPIRES + 7 * DAY - 1), true);
  assert.equal(isWithinRetention(LEASE, EXPIRES + 7 * DAY), false);
  const long = { ...LEASE, expiresAt: ISSUED + 365 * DAY };
  assert.equal(isWithinRetention(long, ISSUED + 300 * DAY), true);
  const revoked = { ...long, revokedAt: ISSUED + DAY };
  assert.equal(isWithinRetention(revoked, ISSUED + 8 * DAY - 1), true);
  assert.equal(isWithinRetention(revoked, ISSUED + 8 * DAY), false);
});
