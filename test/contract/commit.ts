/** Contract: a batch is written completely or not at all, in the order of the decisions, with its access counts. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeRow } from '../../src/core/change.ts';
import type { CredentialId, CredentialType } from '../../src/core/names.ts';
import { readApprovalRequest } from '../../src/store/approval-lists.ts';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import { StoreError } from '../../src/store/errors.ts';
import type { Store } from '../../src/store/port.ts';
import type { StoredChange, WriteSet } from '../../src/store/stored-data.ts';
import { isDeregistered, readHeldRows } from '../../src/store/vault-metadata.ts';
import {
  aCredential,
  aLease,
  anAgent,
  anApproval,
  anEntry,
  anOperator,
  aPolicy,
  aReply,
  aSession,
  asChallenge,
  asPath,
  commit,
  find,
  headAt,
  keptReply,
  leased,
  marked,
  retrievals,
  stored,
  storedPut,
  T0,
  versioned,
} from './rows.ts';
import type { Subject } from './store.ts';

const ONE = Uint8Array.of(1);

/** All that the port returns about a store; the paths, leases and challenges of a test are few and known. */
async function snapshot(store: Store) {
  const paths = ['a', 'b', 'c'].map((path) => ({
    credential: asPath(path),
    version: 1,
    history: true as const,
  }));
  const leases = [1, 2, 3].map((seq) => ({ lease: aLease(seq).id, challenge: asChallenge(seq) }));
  const sessions = [1, 2].map((n) => ({ session: aSession(n).tokenHash, reply: aReply(n).id }));
  const approvals = [1, 2].map((n) => ({ approval: anApproval(n).id }));
  return {
    ...(await store.run(readHead())),
    agents: await store.run(readHeldRows('agent')),
    operators: await store.run(readHeldRows('operator')),
    policies: await store.run(readHeldRows('policy')),
    entries: await store.run(readEntries(1, 100, 100)),
    found: await find(store, [...paths, ...leases, ...sessions, ...approvals]),
    sealed: [
      await store.run(readApprovalRequest(anApproval(1).id)),
      await store.run(readApprovalRequest(anApproval(2).id)),
    ],
    accesses: await store.readAccessCount(A.id),
    isDeregistered: await store.run(isDeregistered(anAgent(1).id)),
  };
}

const A = aCredential('a');
const SETTING: StoredChange[] = [
  stored(A),
  versioned(A, 1, ONE),
  leased(aLease(1)),
  { kind: 'consumeChallenge', id: asChallenge(1), expiresAt: T0 },
  storedPut('agent', anAgent(1)),
  storedPut('operator', anOperator(1)),
  storedPut('policy', aPolicy(1)),
  storedPut('session', aSession(1)),
  keptReply(aReply(1)),
  storedPut('approval', anApproval(1)),
  { kind: 'addApprovalRequest', request: { id: anApproval(1).id, expiresAt: T0, sealed: ONE } },
];

/** One change of every kind: none of them may remain. */
const OF_EVERY_KIND: StoredChange[] = [
  storedPut('agent', anAgent(2)),
  removeRow('agent', anAgent(1)),
  storedPut('operator', anOperator(2)),
  removeRow('operator', anOperator(1)),
  storedPut('policy', aPolicy(2)),
  removeRow('policy', aPolicy(1)),
  storedPut('session', aSession(2)),
  removeRow('session', aSession(1)),
  { kind: 'consumeChallenge', id: asChallenge(2), expiresAt: T0 },
  keptReply(aReply(1, { reply: '"another"' })),
  keptReply(aReply(2)),
  storedPut('approval', anApproval(1, { status: 'denied', approvers: [] })),
  storedPut('approval', anApproval(2)),
  { kind: 'addApprovalRequest', request: { id: anApproval(2).id, expiresAt: T0, sealed: ONE } },
  stored(aCredential('b')),
  stored({ ...A, description: 'new', version: 2 }),
  versioned(A, 2, ONE),
  { kind: 'pruneVersions', credentialId: A.id, through: 1 },
  leased(aLease(2)),
  { kind: 'renewLease', id: aLease(1).id, expiresAt: T0 + 9, policyName: 'other' },
  { kind: 'revokeLease', id: aLease(1).id, revokedAt: T0 + 2 },
  marked(3, anAgent(1).id, null),
  removeRow('credential', A),
];

const CLASHES: readonly (readonly [name: string, batch: Partial<WriteSet>])[] = [
  ['a challenge is spent twice', { changes: [{ kind: 'consumeChallenge', id: asChallenge(1), expiresAt: T0 }] }],
  ['a lease has the id of another', { changes: [leased({ ...aLease(3), id: aLease(1).id })] }],
  ['a path has another credential', { changes: [stored(aCredential('b', { id: 'another' as CredentialId }))] }],
  [
    'a version is there already',
    { changes: [versioned(aCredential('c'), 1, ONE), versioned(aCredential('c'), 1, ONE)] },
  ],
  ['two entries have one sequence number', { entries: [anEntry(2), anEntry(1)] }],
];

export function commitContract({ name, newVault }: Subject): void {
  for (const [clash, { entries = [anEntry(2)], changes = [] }] of CLASHES) {
    test(`${name}: a batch is written completely or not at all: ${clash}`, async (t) => {
      const store = await newVault(t);
      await commit(store, { entries: [anEntry(1, { resource: 'a' })], changes: SETTING });
      const before = await snapshot(store);
      const turn = await store.begin([]);
      const accesses = new Map([[A.id, 5]]);
      const batch = { entries, head: headAt(2, 1), treeNodes: [], changes: [...OF_EVERY_KIND, ...changes], accesses };
      await assert.rejects(turn.commit(batch), StoreError);
      assert.deepEqual(await snapshot(store), before);
      await commit(store, { entries: [anEntry(2)], changes: OF_EVERY_KIND });
      assert.notDeepEqual(await snapshot(store), before);
    });
  }

  test(`${name}: a transaction that is rolled back leaves nothing, and the next one can begin`, async (t) => {
    const store = await newVault(t);
    await commit(store, { entries: [anEntry(1)], changes: SETTING });
    const before = await snapshot(store);
    const turn = await store.begin([{ credential: A.path }]);
    await turn.rollback();
    assert.deepEqual(await snapshot(store), before);
  });

  test(`${name}: changes apply in order: a removed row can be created again in the same batch`, async (t) => {
    const store = await newVault(t);
    await commit(store, { entries: [anEntry(1)], changes: [...SETTING, versioned(A, 2, ONE)] });
    const again = { ...A, id: 'again' as CredentialId, type: 'token' as CredentialType };
    const agent = { ...anAgent(2), name: anAgent(1).name };
    const policy = aPolicy(1, { actions: ['delete'] });
    const operator = { ...anOperator(2), name: anOperator(1).name };
    const session = aSession(1, { expiresAt: T0 + 1 });
    await commit(store, {
      entries: [anEntry(2)],
      changes: [
        removeRow('credential', A),
        stored(again),
        versioned(again, 1, Uint8Array.of(9)),
        removeRow('agent', anAgent(1)),
        storedPut('agent', agent),
        removeRow('operator', anOperator(1)),
        storedPut('operator', operator),
        removeRow('policy', policy),
        storedPut('policy', policy),
        removeRow('session', session),
        storedPut('session', session),
      ],
    });
    const { found, agents, operators, policies } = await snapshot(store);
    assert.deepEqual(found.rows.credential, [again]);
    assert.deepEqual(found.histories, [{ credentialId: 'again', versions: [{ version: 1, createdAt: T0 + 1 }] }]);
    assert.deepEqual(
      found.versions.map(({ version }) => Buffer.from(version.content as Uint8Array).toString('hex')),
      ['09'],
    );
    assert.deepEqual([agents, operators, policies, found.rows.session], [[agent], [operator], [policy], [session]]);
  });

  test(`${name}: changes apply in order: a created row can be removed in the same batch`, async (t) => {
    const store = await newVault(t);
    const before = await snapshot(store);
    const [agent, policy, session] = [anAgent(1), aPolicy(1), aSession(1)];
    await commit(store, {
      changes: [
        stored(A),
        versioned(A, 1, ONE),
        removeRow('credential', A),
        storedPut('agent', agent),
        removeRow('agent', agent),
        storedPut('operator', anOperator(1)),
        removeRow('operator', anOperator(1)),
        storedPut('policy', policy),
        removeRow('policy', policy),
        storedPut('session', session),
        removeRow('session', session),
      ],
    });
    assert.deepEqual(await snapshot(store), before);
    // A credential that comes back with the id would find what was left of it.
    await commit(store, { changes: [stored(A)] });
    assert.deepEqual((await snapshot(store)).found.versions, []);
  });

  test(`${name}: replacing a credential keeps its access count, and versions are pruned up to a number`, async (t) => {
    const store = await newVault(t);
    await commit(store, { changes: [stored(A), stored(aCredential('b')), versioned(aCredential('b'), 1, ONE)] });
    await commit(store, retrievals(1, [A, A, A, A]));
    const later = { ...A, description: 'later', updatedAt: T0 + 5, version: 4 };
    const versions = [1, 2, 3, 4].map((version) => versioned(A, version, ONE));
    const drop = { kind: 'pruneVersions' as const, credentialId: A.id, through: 2 };
    await commit(store, { changes: [stored(later), ...versions, drop] });
    const { rows, histories } = (await snapshot(store)).found;
    assert.deepEqual(
      rows.credential.find(({ id }) => id === A.id),
      later,
    );
    assert.equal(await store.readAccessCount(A.id), 4);
    const numbers = histories.map((history) => history.versions.map(({ version }) => version));
    assert.deepEqual(numbers.sort(), [[1], [3, 4]]);
  });
}
