/** Contract: creating a vault, the reads of a start, and closing. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { removeRow } from '../../src/core/change.ts';
import type { ActorName, AgentId, AgentName, CredentialId, OperatorName, PolicyName } from '../../src/core/names.ts';
import type { Pattern } from '../../src/core/pattern.ts';
import { readEntries, readHead } from '../../src/store/audit-log.ts';
import { StoreError } from '../../src/store/errors.ts';
import type { Store } from '../../src/store/port.ts';
import {
  isDeregistered,
  isEmpty,
  readHeldRows,
  readLeaseOfToken,
  readRootKeyCheck,
  readSession,
  readTargetBinding,
} from '../../src/store/vault-metadata.ts';
import type { ApprovalScope } from '../../src/vault/policies/approval-rule.ts';
import type { TtlSeconds } from '../../src/vault/policies/policy.ts';
import {
  aCredential,
  aLease,
  anAgent,
  anEntry,
  anOperator,
  aPolicy,
  aSession,
  asPath,
  commit,
  headAt,
  KEY_CHECK,
  KEYS,
  leased,
  marked,
  stored,
  storedPut,
  T0,
} from './rows.ts';
import type { Subject } from './store.ts';

const byName = <T extends { readonly name: string }>(rows: readonly T[]): T[] =>
  rows.toSorted((a, b) => (a.name < b.name ? -1 : 1));

async function everything(store: Store) {
  return {
    keyCheck: await store.run(readRootKeyCheck()),
    ...(await store.run(readHead())),
    agents: byName(await store.run(readHeldRows('agent'))),
    policies: byName(await store.run(readHeldRows('policy'))),
    session: await store.run(readSession(aSession(1).tokenHash)),
  };
}

export function beginningContract({ name, newPlace, newVault }: Subject): void {
  test(`${name}: a new store is empty`, async (t) => {
    const store = await (await newPlace(t))();
    t.after(() => store.close());
    assert.deepEqual(await everything(store), {
      keyCheck: null,
      head: null,
      last: null,
      highestSeq: 0,
      agents: [],
      policies: [],
      session: null,
    });
  });

  test(`${name}: a vault is created with its check value and its first head record`, async (t) => {
    const store = await (await newPlace(t))();
    t.after(() => store.close());
    const head = { ...headAt(3), epoch: 8 };
    await store.initialise(KEY_CHECK, head, T0, KEYS);
    assert.equal(await store.run(readRootKeyCheck()), KEY_CHECK);
    assert.deepEqual(await store.run(readHead()), { head, last: null, highestSeq: 0 });
  });

  test(`${name}: a vault is created once; a second attempt is rejected and changes nothing`, async (t) => {
    const store = await newVault(t);
    await commit(store, { entries: [anEntry(1)], changes: [storedPut('agent', anAgent(1))] });
    const before = await everything(store);
    await assert.rejects(store.initialise('another', headAt(0), T0 + 1, KEYS), StoreError);
    assert.deepEqual(await everything(store), before);
    await commit(store, { entries: [anEntry(2)] });
    assert.equal((await store.run(readHead())).last?.seq, 2);
  });

  test(`${name}: the head record and the last row are read independently`, async (t) => {
    const store = await newVault(t);
    await commit(store, { entries: [anEntry(1), anEntry(2)] });
    const last = { seq: 2, hmac: anEntry(2).hmac, timestamp: anEntry(2).timestamp };
    assert.deepEqual(await store.run(readHead()), { head: headAt(2), last, highestSeq: 2 });
    await commit(store, { seq: 9 });
    assert.deepEqual(await store.run(readHead()), { head: headAt(9), last, highestSeq: 2 });
  });

  test(`${name}: the highest sequence number is that of any row: an entry, a lease or a bulk revocation`, async (t) => {
    const store = await newVault(t);
    const highest = async () => (await store.run(readHead())).highestSeq;
    await commit(store, { entries: [anEntry(1), anEntry(2)] });
    assert.equal(await highest(), 2);
    await commit(store, { changes: [leased(aLease(7))] });
    assert.equal(await highest(), 7);
    await commit(store, { changes: [marked(9, 'agent-1' as AgentId, null)] });
    assert.equal(await highest(), 9);
    await commit(store, { entries: [anEntry(10)] });
    assert.equal(await highest(), 10);
  });

  const rows: Readonly<Record<string, Parameters<typeof commit>[1]>> = {
    'an entry': { entries: [anEntry(1)] },
    'an agent': { changes: [storedPut('agent', anAgent(1))] },
    'an operator': { changes: [storedPut('operator', anOperator(1))] },
    'a policy': { changes: [storedPut('policy', aPolicy(1))] },
    'a session': { changes: [storedPut('session', aSession(1))] },
    'a credential': { changes: [stored(aCredential('a'))] },
    'a lease': { changes: [leased(aLease(1))] },
    'a mark': { changes: [marked(1, 'agent-1' as AgentId, null)] },
  };
  for (const [row, batch] of Object.entries(rows)) {
    test(`${name}: a store with ${row} alone is not empty`, async (t) => {
      const store = await (await newPlace(t))();
      t.after(() => store.close());
      assert.equal(await store.run(isEmpty()), true);
      await commit(store, batch);
      assert.equal(await store.run(isEmpty()), false);
    });
  }

  test(`${name}: agents, operators, policies and sessions are returned as stored, with their MACs`, async (t) => {
    const store = await newVault(t);
    const agents = [
      anAgent(1, { description: 'Déploie "prod" \\ \'x\' 🔑\n\u2028' }),
      anAgent(2, { name: 'CI-Two' as AgentName, registeredAt: T0 + 2, registeredBy: ['operator:ann' as ActorName] }),
    ];
    const many = Array.from({ length: 256 }, (_, i) => `p${i}/*` as Pattern);
    const policies = [
      aPolicy(1, { resources: ['a/b' as Pattern, '*' as Pattern], actions: ['delete', 'list'] }),
      aPolicy(2, { resources: many, maxTtlSeconds: 31_536_000 as TtlSeconds }),
      aPolicy(3, { name: 'Policy-1' as PolicyName }),
      aPolicy(5, { approval: { for: 'use', each: 'host', scope: '3 uses' as ApprovalScope, quorum: 2, timeout: 60 } }),
      aPolicy(4, { limits: { usesPerHour: 1, bytesPerHour: 1_000_000_000_000, concurrent: null } }),
    ];
    const operators = [
      anOperator(1, { description: 'on\ncall', roles: ['viewer', 'approver', 'editor', 'admin'] }),
      anOperator(2, { name: 'operator:ANN-2' as OperatorName, sessionsEndedAt: T0 + 3 }),
    ];
    const sessions = [aSession(1), aSession(2), aSession(4, { endsAt: T0 + 12 * 3_600_000 })];
    const renewed = { ...aSession(4), expiresAt: T0 + 7_200_000, endsAt: T0 + 12 * 3_600_000 };
    await commit(store, {
      changes: [
        ...agents.map((agent) => storedPut('agent', agent)),
        ...operators.map((operator) => storedPut('operator', operator)),
        ...policies.map((policy) => storedPut('policy', policy)),
        ...sessions.map((session) => storedPut('session', session)),
      ],
    });
    assert.deepEqual(byName(await store.run(readHeldRows('agent'))), byName(agents));
    assert.deepEqual(byName(await store.run(readHeldRows('policy'))), byName(policies));
    assert.deepEqual(byName(await store.run(readHeldRows('operator'))), byName(operators));
    for (const session of sessions) assert.deepEqual(await store.run(readSession(session.tokenHash)), session);
    await commit(store, { changes: [storedPut('session', renewed)] });
    assert.deepEqual(await store.run(readSession(renewed.tokenHash)), renewed);
    assert.equal(await store.run(readSession(aSession(3).tokenHash)), null);
  });

  test(`${name}: a use lease is found by its token, with the revocations that apply to it, and targets by path`, async (t) => {
    const store = await newVault(t);
    const tokenHash = aSession(1).tokenHash;
    const lease = aLease(1, { kind: 'use', tokenHash });
    const binding = {
      credentialId: lease.credentialId,
      path: lease.path,
      service: null,
      allowedTargets: [],
      placement: { kind: 'query' as const, name: 'key' },
      updatedAt: T0,
      mac: 'of the targets',
    };
    await commit(store, {
      changes: [stored(aCredential('prod/key')), leased(lease), leased(aLease(2)), storedPut('targets', binding)],
    });
    assert.deepEqual(await store.run(readLeaseOfToken(tokenHash)), lease);
    assert.equal(await store.run(readLeaseOfToken(aSession(2).tokenHash)), null);
    assert.deepEqual(await store.run(readTargetBinding(lease.path)), binding);
    assert.equal(await store.run(readTargetBinding(asPath('prod/other'))), null);
    await commit(store, { changes: [marked(3, lease.agentId, null), removeRow('targets', lease)] });
    assert.deepEqual(await store.run(readLeaseOfToken(tokenHash)), { ...lease, revokedAt: T0 + 3 });
    assert.equal(await store.run(readTargetBinding(lease.path)), null);
  });

  test(`${name}: a stored row replaces the previous one, a removed row is deleted, and other rows stay`, async (t) => {
    const store = await newVault(t);
    const put = [1, 2].flatMap((n) => [
      storedPut('agent', anAgent(n)),
      storedPut('policy', aPolicy(n)),
      storedPut('session', aSession(n)),
    ]);
    await commit(store, { changes: put });
    const replaced = aPolicy(1, { actions: ['store'], createdAt: T0 + 5 });
    await commit(store, {
      changes: [
        storedPut('policy', { ...replaced, mac: 'another' }),
        removeRow('policy', aPolicy(2)),
        removeRow('agent', anAgent(2)),
        removeRow('session', aSession(2)),
      ],
    });
    assert.deepEqual(await store.run(readHeldRows('policy')), [{ ...replaced, mac: 'another' }]);
    assert.deepEqual(await store.run(readHeldRows('agent')), [anAgent(1)]);
    assert.deepEqual(await store.run(readSession(aSession(1).tokenHash)), aSession(1));
    assert.equal(await store.run(readSession(aSession(2).tokenHash)), null);
  });

  test(`${name}: an agent is deregistered if a bulk revocation ended all its leases and its row does not exist`, async (t) => {
    const store = await newVault(t);
    const ids = [1, 2, 3, 4].map((n) => anAgent(n).id);
    const [one, two, , four] = ids;
    assert.ok(one && two && four);
    const credential = 'c' as CredentialId;
    const marks = [
      marked(1, one, null),
      marked(2, two, credential),
      marked(3, null, credential),
      marked(4, four, null),
    ];
    await commit(store, { changes: [storedPut('agent', anAgent(4)), ...marks] });
    assert.deepEqual(await Promise.all(ids.map((id) => store.run(isDeregistered(id)))), [true, false, false, false]);
  });

  test(`${name}: committed data is available to the next process, whether the store was closed or not`, async (t) => {
    const open = await newPlace(t);
    const store = await open();
    await store.initialise(KEY_CHECK, headAt(0), T0, KEYS);
    await commit(store, {
      entries: [anEntry(1)],
      changes: [storedPut('agent', anAgent(1)), storedPut('session', aSession(1)), stored(aCredential('a'))],
    });
    const before = await everything(store);
    const reopened = await open();
    assert.deepEqual(await everything(reopened), before);
    await reopened.close();
    await store.close();
    const after = await open();
    t.after(() => after.close());
    assert.deepEqual(await everything(after), before);
    assert.deepEqual(await after.run(readEntries(1, 1, 1)), [anEntry(1)]);
  });

  test(`${name}: a closed store rejects every call`, async (t) => {
    const store = await (await newPlace(t))();
    await store.close();
    await assert.rejects(store.run(readHead()));
    await assert.rejects(store.initialise(KEY_CHECK, headAt(0), T0, KEYS));
  });
}
