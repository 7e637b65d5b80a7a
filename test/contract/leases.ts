/** Contract: leases after revocations, compared with the rules of `src/vault/leases/lease.ts` over random histories. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ActorName, AgentId, CredentialId } from '../../src/core/names.ts';
import type { LeaseQuery } from '../../src/store/lease-lists.ts';
import type { Store } from '../../src/store/port.ts';
import type { StoredChange } from '../../src/store/stored-data.ts';
import {
  type BulkRevocation,
  ENDED_LEASE_RETENTION_MS,
  isWithinRetention,
  LEASE_STATUSES,
  type Lease,
  type LeaseStatus,
  statusOf,
  applyRevocation as underMark,
} from '../../src/vault/leases/lease.ts';
import { withScope } from '../kit/directory.ts';
import { runs } from '../kit/property.ts';
import { aLease, asPath, commit, find, leased, T0 } from './rows.ts';
import { countActive, countLeases, countRevokedBy, listLeases } from './scan.ts';
import type { Subject } from './store.ts';

/** The time between two events. Leases last from less than one event to beyond the end. */
const STEP_MS = 1000;
const AGENTS = ['1', '2', '3'] as const;
const PATHS = ['a', 'b', 'c'] as const;

type Event =
  | { readonly kind: 'issue'; readonly agent: string; readonly path: string; readonly lasts: number }
  | { readonly kind: 'mark'; readonly agent: string | null; readonly path: string | null }
  | { readonly kind: 'renew' | 'revoke'; readonly which: number; readonly lasts: number };

const agent = fc.constantFrom(...AGENTS);
const path = fc.constantFrom(...PATHS);
const lasts = fc.integer({ min: 1, max: 40 });
const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('issue' as const), agent, path, lasts }) },
  {
    weight: 2,
    arbitrary: fc
      .record({ kind: fc.constant('mark' as const), agent: fc.option(agent), path: fc.option(path) })
      .filter((mark) => mark.agent !== null || mark.path !== null),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom('renew' as const, 'revoke' as const), which: fc.nat(), lasts }),
  },
);

const idOfAgent = (name: string): AgentId => `agent-${name}` as AgentId;
const nameOf = (id: AgentId): ActorName => id.replace('agent', 'ci') as ActorName;
const idOfPath = (name: string): CredentialId => `of ${name}` as CredentialId;

/** The changes of each event, and the expected leases at the end. */
function play(events: readonly Event[]): {
  changes: StoredChange[];
  leases: Lease[];
  /** How many leases each bulk revocation ended. */
  ended: Map<BulkRevocation, number>;
} {
  let leases: Lease[] = [];
  const ended = new Map<BulkRevocation, number>();
  const changes = events.flatMap((happened, index): StoredChange[] => {
    const seq = index + 1;
    const now = T0 + seq * STEP_MS;
    if (happened.kind === 'issue') {
      const lease = aLease(seq, {
        agentId: idOfAgent(happened.agent),
        agentName: nameOf(idOfAgent(happened.agent)),
        credentialId: idOfPath(happened.path),
        path: asPath(happened.path),
        issuedAt: now,
        expiresAt: now + happened.lasts * STEP_MS,
      });
      leases = [...leases, lease];
      return [leased(lease)];
    }
    if (happened.kind === 'mark') {
      const agentId = happened.agent === null ? null : idOfAgent(happened.agent);
      const credentialId = happened.path === null ? null : idOfPath(happened.path);
      const mark = { seq, agentId, credentialId, kind: null, revokedAt: now };
      const before = leases;
      leases = before.map((lease) => underMark(lease, mark));
      ended.set(mark, leases.filter((lease, at) => lease !== before[at]).length);
      return [{ kind: 'revokeMatching', revocation: mark }];
    }
    const lease = leases[happened.which % Math.max(1, leases.length)];
    if (lease === undefined || statusOf(lease, now) !== 'active') return [];
    const { id } = lease;
    const renewal = { expiresAt: now + happened.lasts * STEP_MS, policyName: `renewed at ${seq}` };
    const altered = happened.kind === 'renew' ? { ...lease, ...renewal } : { ...lease, revokedAt: now };
    leases = leases.map((other) => (other.id === id ? altered : other));
    return [
      happened.kind === 'renew' ? { kind: 'renewLease', id, ...renewal } : { kind: 'revokeLease', id, revokedAt: now },
    ];
  });
  return { changes, leases, ended };
}

function fits(lease: Lease, { agentId, agentName, path: at, status, now }: LeaseQuery): boolean {
  return (
    isWithinRetention(lease, now) &&
    (agentId === null || lease.agentId === agentId) &&
    (agentName === null || lease.agentName === agentName) &&
    (at === null || lease.path === at) &&
    (status === null || statusOf(lease, now) === status)
  );
}

const queryAt = (now: number): LeaseQuery => ({ agentId: null, agentName: null, path: null, status: null, now });

async function assertLists(store: Store, leases: readonly Lease[], query: LeaseQuery): Promise<void> {
  const expected = leases.filter((lease) => fits(lease, query)).toReversed();
  assert.deepEqual(await listLeases(store, query), expected, JSON.stringify(query));
  assert.equal((await countLeases(store, query)).count, expected.length);
  const cut = expected.filter(({ seq }) => seq < 12);
  assert.deepEqual(await listLeases(store, query, 12, 1, 3), cut.slice(1, 4));
  assert.equal((await countLeases(store, query, 12, 2)).count, Math.min(2, cut.length));
}

/** The count of active leases, and that a later count may begin at the oldest one. */
async function assertActive(store: Store, leases: readonly Lease[], now: number): Promise<void> {
  const activeAt = (time: number): Lease[] => leases.filter((lease) => statusOf(lease, time) === 'active');
  const { retrieve, use, oldestSeq } = await countActive(store, now, 0);
  assert.deepEqual([retrieve, use], [activeAt(now).length, 0]);
  assert.equal(oldestSeq, activeAt(now)[0]?.seq ?? null);
  if (oldestSeq === null) return;
  const later = now + 3 * STEP_MS;
  assert.equal((await countActive(store, later, oldestSeq)).retrieve, activeAt(later).length);
}

export function leaseContract({ name, newVault }: Subject): void {
  test(`${name}: transactions, counts and lists show leases after bulk revocations, revocations and renewals; the leases that each bulk revocation ended can be counted later`, async () => {
    const histories = fc.array(event, { minLength: 30, maxLength: 60 });
    await fc.assert(
      fc.asyncProperty(histories, (events) =>
        withScope(async (scope) => {
          const store = await newVault(scope);
          const { changes, leases, ended } = play(events);
          await commit(store, { changes });
          const end = T0 + events.length * STEP_MS;
          const keys = leases.map(({ id }) => ({ lease: id }));
          assert.deepEqual((await find(store, keys)).leases, leases);
          for (const [mark, count] of ended) {
            const agentName = mark.agentId === null ? null : nameOf(mark.agentId);
            assert.equal(await countRevokedBy(store, { revocation: mark, agentName }), count, JSON.stringify(mark));
          }
          for (const now of [
            end,
            end - 5 * STEP_MS,
            end + 20 * STEP_MS,
            end - 20 * STEP_MS + ENDED_LEASE_RETENTION_MS,
          ]) {
            await assertActive(store, leases, now);
            for (const status of [null, ...LEASE_STATUSES]) {
              await assertLists(store, leases, { ...queryAt(now), status });
              await assertLists(store, leases, { ...queryAt(now), status, agentName: 'ci-2' as ActorName });
              await assertLists(store, leases, { ...queryAt(now), status, path: asPath('b') });
              await assertLists(store, leases, { ...queryAt(now), status, agentId: idOfAgent('3'), path: asPath('c') });
            }
          }
        }),
      ),
      runs(4, 10),
    );
  });

  const listedAt = async (store: Store, now: number, status: LeaseStatus | null = null): Promise<number[]> =>
    (await listLeases(store, { ...queryAt(now), status })).map(({ seq }) => seq);

  test(`${name}: a lease is listed while it is active and for 7 days after its end, however it ended`, async (t) => {
    const store = await newVault(t);
    const ends = T0 + 100_000;
    const leases = [1, 2, 3].map((seq) => aLease(seq, { expiresAt: ends, agentId: idOfAgent(String(seq)) }));
    const mark = { seq: 4, agentId: idOfAgent('3'), credentialId: null, kind: null, revokedAt: T0 + 20 };
    await commit(store, {
      changes: [
        ...leases.map(leased),
        { kind: 'revokeLease', id: aLease(2).id, revokedAt: T0 + 10 },
        { kind: 'revokeMatching', revocation: mark },
      ],
    });
    assert.deepEqual(await listedAt(store, T0 + 30), [3, 2, 1]);
    assert.deepEqual(await listedAt(store, T0 + 9 + ENDED_LEASE_RETENTION_MS), [3, 2, 1]);
    assert.deepEqual(await listedAt(store, T0 + 10 + ENDED_LEASE_RETENTION_MS), [3, 1]);
    assert.deepEqual(await listedAt(store, T0 + 20 + ENDED_LEASE_RETENTION_MS), [1]);
    assert.deepEqual(await listedAt(store, ends - 1 + ENDED_LEASE_RETENTION_MS), [1]);
    assert.deepEqual(await listedAt(store, ends + ENDED_LEASE_RETENTION_MS), []);
  });

  test(`${name}: a lease ends after its last millisecond`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: [leased(aLease(1, { expiresAt: T0 + 5 }))] });
    assert.deepEqual(await listedAt(store, T0 + 4, 'active'), [1]);
    assert.deepEqual(await listedAt(store, T0 + 5, 'active'), []);
    assert.deepEqual(await listedAt(store, T0 + 5, 'expired'), [1]);
  });
}
