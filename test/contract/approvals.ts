/** Contract: approvals and their requests, by id and by key, in lists, and as selected for background settlement. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ActorName, AgentId } from '../../src/core/names.ts';
import {
  type ApprovalQuery,
  countApprovals,
  findAnswered,
  findApproval,
  findLiveApprovals,
  findTimedOut,
  listApprovals,
  MAX_APPROVALS_OF_KEY,
  NEWEST_APPROVAL,
  readApprovalRequest,
} from '../../src/store/approval-lists.ts';
import type { Store } from '../../src/store/port.ts';
import type { ResultOf } from '../../src/store/statement.ts';
import { type Authenticated, ENDED_APPROVAL_RETENTION_MS, type StoredChange } from '../../src/store/stored-data.ts';
import type { Approval, ApprovalId, ApprovalKey, ApprovalStatus } from '../../src/vault/approvals/approval.ts';
import { anApproval, anEntry, asPath, commit, find, storedPut, T0 } from './rows.ts';
import type { Subject } from './store.ts';
import { numbers, sweepAll } from './sweeping.ts';

const put = (approval: Authenticated<Approval>): StoredChange => storedPut('approval', approval);
const idsOf = (rows: readonly { readonly id: ApprovalId }[]): ApprovalId[] => rows.map(({ id }) => id);
const idOf = (n: number): ApprovalId => anApproval(n).id;

const ALL: ApprovalQuery = { agentId: null, agentName: null, status: null, now: T0 };

/** The ids of the pages, which are counted too. */
async function listIn(store: Store, query: ApprovalQuery, limit: number): Promise<ApprovalId[]> {
  const ids: ApprovalId[] = [];
  for (let before: string | null = NEWEST_APPROVAL; before !== null; ) {
    const { rows, next }: ResultOf<typeof listApprovals> = await store.run(
      listApprovals(store.dialect, query, before, limit),
    );
    assert.ok(rows.length <= limit);
    ids.push(...idsOf(rows));
    before = next;
  }
  const { count } = await store.run(countApprovals(store.dialect, query, NEWEST_APPROVAL, 1000));
  assert.equal(count, ids.length);
  return ids;
}

export function approvalContract({ name, newVault }: Subject): void {
  test(`${name}: an approval is returned as stored, by id and by key, and replaced`, async (t) => {
    const store = await newVault(t);
    const ended = anApproval(2, {
      status: 'approved',
      endedBy: 'operator:ann' as ActorName,
      endedAt: T0 + 5,
      usesLeft: 0,
      grantEndsAt: T0 + 9,
      method: null,
      host: null,
      targetPath: null,
      purpose: null,
      action: 'retrieve',
      approvers: [],
    });
    await commit(store, { changes: [put(anApproval(1)), put(ended)] });
    const { rows } = await find(store, [{ approval: idOf(1) }, { approval: idOf(2) }, { approval: idOf(3) }]);
    assert.deepEqual(
      rows.approval.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
      [anApproval(1), ended],
    );
    const denied = { ...anApproval(1, { status: 'denied', reason: 'no' }), mac: 'another' };
    await commit(store, { changes: [put(denied)] });
    assert.deepEqual((await find(store, [{ approval: idOf(1) }])).rows.approval, [denied]);
    assert.deepEqual(await store.run(findApproval(idOf(1))), { id: idOf(1), path: asPath('prod/key') });
    assert.equal(await store.run(findApproval(idOf(3))), null);
  });

  test(`${name}: the newest approvals of a key are loaded, each once, with what the log records of them`, async (t) => {
    const store = await newVault(t);
    const count = MAX_APPROVALS_OF_KEY + 3;
    const other = anApproval(count + 1, { key: 'another' as ApprovalKey });
    const entry = { ...anEntry(1), subject: `approval:${idOf(count)}`, state: 'a state' };
    await commit(store, { entries: [entry], changes: [...numbers(count).map((n) => put(anApproval(n))), put(other)] });
    const keys = [{ approvalKey: anApproval(1).key }, { approval: idOf(count) }, { approvalKey: anApproval(1).key }];
    const { rows, states } = await find(store, keys);
    const newest = numbers(count).slice(-MAX_APPROVALS_OF_KEY).map(idOf);
    assert.deepEqual(idsOf(rows.approval).sort(), newest);
    assert.equal(states.get(`approval:${idOf(count)}`), 'a state');
    assert.deepEqual(idsOf((await find(store, [{ approvalKey: other.key }])).rows.approval), [other.id]);
    assert.deepEqual((await find(store, [{ approvalKey: 'none' as ApprovalKey }])).rows.approval, []);
  });

  test(`${name}: approvals are listed newest first, by agent and by status, which follows the time`, async (t) => {
    const store = await newVault(t);
    const statuses: readonly ApprovalStatus[] = ['pending', 'approved', 'denied', 'timed_out', 'withdrawn', 'pending'];
    const approvals = numbers(12).map((n) =>
      anApproval(n, {
        status: statuses[n % statuses.length] ?? 'pending',
        answerBy: T0 + n,
        agentId: `agent-${n % 2}` as AgentId,
        agentName: `ci-${n % 2}` as ActorName,
      }),
    );
    await commit(store, { changes: approvals.map(put) });
    const expect = (fits: (approval: Approval) => boolean) => idsOf(approvals.filter(fits)).toReversed();
    for (const limit of [1, 5, 12, 100]) {
      assert.deepEqual(
        await listIn(store, ALL, limit),
        expect(() => true),
      );
    }
    for (const now of [T0, T0 + 6, T0 + 100]) {
      for (const status of new Set(statuses)) {
        const isOverdue = (approval: Approval) => approval.status === 'pending' && approval.answerBy <= now;
        const statusOf = (approval: Approval) => (isOverdue(approval) ? 'timed_out' : approval.status);
        assert.deepEqual(
          await listIn(store, { ...ALL, status, now }, 3),
          expect((approval) => statusOf(approval) === status),
          status,
        );
      }
    }
    const ofAgent = { ...ALL, agentId: 'agent-1' as AgentId, agentName: 'ci-1' };
    for (const query of [ofAgent, { ...ofAgent, agentId: null }, { ...ofAgent, agentName: null }]) {
      assert.deepEqual(
        await listIn(store, query, 2),
        expect(({ agentId }) => agentId === 'agent-1'),
      );
      assert.deepEqual(
        await listIn(store, { ...query, status: 'timed_out', now: T0 + 6 }, 2),
        expect(
          ({ agentId, status, answerBy }) =>
            agentId === 'agent-1' && (status === 'timed_out' || (status === 'pending' && answerBy <= T0 + 6)),
        ),
      );
    }
    assert.deepEqual(await listIn(store, { ...ofAgent, agentName: 'ci-0' }, 2), []);
    assert.equal((await store.run(countApprovals(store.dialect, ALL, NEWEST_APPROVAL, 5))).count, 5);
  });

  test(`${name}: overdue and answered approvals, and those that may still count, are found`, async (t) => {
    const store = await newVault(t);
    await commit(store, {
      changes: [
        put(anApproval(1, { answerBy: T0 + 5 })),
        put(anApproval(2, { answerBy: T0 + 6 })),
        put(anApproval(3, { status: 'approved', grantEndsAt: T0 + 6 })),
        put(anApproval(4, { status: 'approved', grantEndsAt: T0 + 5 })),
        put(anApproval(5, { status: 'denied' })),
      ],
    });
    assert.deepEqual(idsOf(await store.run(findTimedOut(T0 + 5, 9))), [idOf(1)]);
    assert.deepEqual(idsOf(await store.run(findTimedOut(T0 + 6, 1))), [idOf(1)]);
    assert.deepEqual(
      idsOf((await store.run(findLiveApprovals(store.dialect, T0 + 5, '', 9))).rows),
      [1, 2, 3].map(idOf),
    );
    assert.deepEqual(await store.run(findLiveApprovals(store.dialect, T0 + 5, idOf(1), 1)), {
      rows: [{ id: idOf(2), path: asPath('prod/key') }],
      next: idOf(2),
    });
    assert.deepEqual(
      [...(await store.run(findAnswered(store.dialect, numbers(6).map(idOf))))].sort(),
      [3, 4, 5].map(idOf),
    );
    assert.deepEqual(await store.run(findAnswered(store.dialect, [idOf(6)])), []);
    assert.deepEqual(await store.run(findAnswered(store.dialect, [])), []);
    assert.deepEqual(
      [...(await store.run(findAnswered(store.dialect, numbers(3000).map(idOf))))].sort(),
      [3, 4, 5].map(idOf),
    );
  });

  test(`${name}: the steps through approvals that may still count pass over spent grants`, async (t) => {
    const store = await newVault(t);
    const isLive = (n: number): boolean => n % 300 === 7;
    const approvals = numbers(1000).map((n) =>
      anApproval(n, n === 607 ? {} : { status: 'approved', grantEndsAt: isLive(n) ? T0 + 6 : T0 + 5 }),
    );
    await commit(store, { changes: approvals.map(put) });
    for (const limit of [1, 2, 64]) {
      const ids: ApprovalId[] = [];
      for (let after: string | null = ''; after !== null; ) {
        const { rows, next }: ResultOf<typeof findLiveApprovals> = await store.run(
          findLiveApprovals(store.dialect, T0 + 5, after, limit),
        );
        assert.ok(rows.length <= limit);
        ids.push(...idsOf(rows));
        after = next;
      }
      assert.deepEqual(ids, numbers(1000).filter(isLive).map(idOf));
    }
  });

  test(`${name}: an approval and its request are deleted a week after they could count, and not earlier`, async (t) => {
    const store = await newVault(t);
    const expiresAt = T0 + 1000;
    const sealed = Uint8Array.of(1, 2, 3);
    await commit(store, {
      changes: [
        put(anApproval(1, { expiresAt })),
        put(anApproval(2, { expiresAt: expiresAt + 1 })),
        ...[1, 2].map((n): StoredChange => {
          return { kind: 'addApprovalRequest', request: { id: idOf(n), expiresAt: expiresAt + n - 1, sealed } };
        }),
      ],
    });
    const now = expiresAt + ENDED_APPROVAL_RETENTION_MS;
    assert.equal(await sweepAll(store, now), 0);
    assert.deepEqual([...((await store.run(readApprovalRequest(idOf(1)))) ?? [])], [...sealed]);
    assert.equal(await sweepAll(store, now + 1), 2);
    assert.deepEqual(await listIn(store, ALL, 9), [idOf(2)]);
    assert.equal(await store.run(readApprovalRequest(idOf(1))), null);
    assert.notEqual(await store.run(readApprovalRequest(idOf(2))), null);
  });
}
