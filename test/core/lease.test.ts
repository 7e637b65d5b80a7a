// Leases: their end, bulk revocations and renewals. SOURCE: docs/decisions.md, "Leases".
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentId, AgentName, CredentialId, LeaseId } from '../../src/core/names.ts';
import { parsePath } from '../../src/core/path.ts';
import {
  appliesTo,
  applyRevocation,
  type BulkRevocation,
  isWithinRetention,
  type Lease,
  statusOf,
} from '../../src/vault/leases/lease.ts';
import type { Command } from './history/commands.ts';
import { World } from './history/world.ts';

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

/** An agent with a session, and a policy under which it retrieves. */
function lent() {
  const world = new World({ adminMayRetrieve: true, versionsKept: 10 });
  const run = (...commands: readonly Command[]) => world.play({ wait: { ms: 0 }, commands });
  const policy = { name: 'p', principal: 'agent:a', resources: ['db'], actions: ['retrieve'], maxTtlSeconds: 60 };
  const retrieve: Command = { kind: 'retrieve', by: 2, path: 'db', version: null, ttl: null };
  run({ kind: 'register', by: 0, name: 'a', description: '' });
  run({ kind: 'challenge', name: 'a' }, { kind: 'verify', name: 'a', challenge: 0, isSigned: true });
  run({ kind: 'createPolicy', by: 0, policy });
  run({ kind: 'store', by: 0, path: 'db', type: null, description: null, onlyIfNew: false });
  assert.equal(run(retrieve)[0]?.code, 'OK');
  /** The codes for the agent and for the administrator, who both renew the newest lease. */
  const renew = () => run(...[2, 0].map((by): Command => ({ kind: 'renew', by, lease: 0 }))).map(({ code }) => code);
  return { world, run, policy, renew };
}

test('a renewal is decided by the policies as they are now, and one that is denied leaves the lease unchanged', () => {
  const { world, run, policy, renew } = lent();
  const shorter = { ...policy, name: 'shorter', maxTtlSeconds: 30 };
  run({ kind: 'createPolicy', by: 0, policy: shorter }, { kind: 'deletePolicy', by: 0, name: 'p' });
  assert.deepEqual(renew(), ['OK', 'OK']);
  const [lease] = world.shelf.leases();
  assert.deepEqual([lease?.policyName, lease?.expiresAt], ['shorter', world.now + 30_000]);
  run({ kind: 'deletePolicy', by: 0, name: 'shorter' });
  assert.deepEqual(renew(), ['ACCESS_DENIED', 'ACCESS_DENIED']);
  assert.deepEqual(world.shelf.leases(), [lease]);
});

const END: Readonly<Record<string, (scene: ReturnType<typeof lent>) => void>> = {
  expired: ({ world }) => void world.play({ wait: { ms: 60_000 }, commands: [] }),
  'been revoked': ({ run }) => void run({ kind: 'revoke', by: 0, lease: 0 }),
  'lost its credential': ({ run }) => void run({ kind: 'remove', by: 0, path: 'db' }),
};

for (const [what, end] of Object.entries(END)) {
  test(`a lease that has ${what} is not renewed`, () => {
    const scene = lent();
    end(scene);
    assert.deepEqual(scene.renew(), ['LEASE_ENDED', 'LEASE_ENDED']);
  });
}
