// When a commit fails: no value, no partial change, memory equal to the store, and recovery without an operator.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { AgentName, PolicyName } from '../../src/core/names.ts';
import { StoreError } from '../../src/store/errors.ts';
import { countLeases, NEWEST_LEASE } from '../../src/store/lease-lists.ts';
import { listAgents } from '../../src/vault/agents/endpoints.ts';
import { deregisterAgent, registerAgent } from '../../src/vault/agents/registration.ts';
import { remove } from '../../src/vault/credentials/credential-operations.ts';
import { createPolicy, deletePolicy, readPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy, type PolicyDraft } from '../../src/vault/policies/policy.ts';
import { runs } from '../kit/property.ts';
import { newAgentKey } from '../vault/agents-fixture.ts';
import {
  admin,
  assertMemoryIsTheStore,
  get,
  type OpenedVault,
  openVault,
  outcomeOf,
  put,
  readLog,
  settle,
  toPath,
  until,
  verify,
  withCommit,
} from '../vault/fixture.ts';

type Mishap = 'none' | 'before' | 'after';

/** A store whose commits fail in turn: `before` the write or `after` it. */
function withMishaps(mishaps: Mishap[]) {
  return withCommit(async (_batch, commit) => {
    const mishap = mishaps.shift() ?? 'none';
    if (mishap === 'before') throw new StoreError('unavailable', 'a made-up failure');
    await commit();
    if (mishap === 'after') throw new StoreError('unknown', 'a made-up loss of the connection');
  });
}

const draft = (name: string): PolicyDraft =>
  Policy.parse({ name, principal: 'agent:ci-*', resources: ['prod/*'], actions: ['retrieve'] });

async function register(vault: OpenedVault, name: string, context = admin()) {
  return registerAgent(vault, context, {
    name: name as AgentName,
    description: '',
    publicKey: newAgentKey().publicKey,
  });
}

test('after a failed commit every caller of the batch is rejected without a value, and nothing has changed', async (t) => {
  const mishaps: Mishap[] = [];
  const vault = await openVault(t, { inFront: withMishaps(mishaps) });
  await put(vault, 'prod/key', 'the value');
  await vault.ledger.submit(createPolicy.operation(admin(), draft('old')));
  const before = await readLog(vault.real);
  mishaps.push('before');
  const answers = await Promise.allSettled([
    get(vault, 'prod/key'),
    put(vault, 'prod/new'),
    register(vault, 'ci-1'),
    vault.ledger.submit(createPolicy.operation(admin(), draft('new'))),
    vault.ledger.submit(deletePolicy.operation(admin(), 'old' as PolicyName)),
    get(vault, 'none'),
  ]);
  for (const answer of answers) {
    assert.equal(answer.status, 'rejected');
    assert.deepEqual([answer.reason.code, answer.reason.retryAfterSeconds], ['UNAVAILABLE', 1]);
    assert.doesNotMatch(JSON.stringify(Object.values(answer.reason)) + answer.reason.stack, /the value/);
  }
  assert.equal(vault.ledger.state, 'failing');
  assert.equal(vault.failures.length, 1);
  assert.deepEqual(await readLog(vault.real), before);

  assert.deepEqual(await vault.ledger.submit(listAgents.operation(admin(), null)), []);
  assert.equal((await vault.ledger.submit(readPolicy.operation(admin(), 'old' as PolicyName))).name, 'old');
  assert.equal(await outcomeOf(vault.ledger.submit(readPolicy.operation(admin(), 'new' as PolicyName))), 'NOT_FOUND');
  assert.equal(await outcomeOf(get(vault, 'prod/new')), 'NOT_FOUND');
  await assertMemoryIsTheStore(vault);
  assert.equal(await get(vault, 'prod/key'), 'the value');
  await register(vault, 'ci-1');
  const everyLease = { agentId: null, agentName: null, path: null, status: null, now: vault.clock.now() };
  assert.equal((await vault.real.run(countLeases(vault.real.dialect, everyLease, NEWEST_LEASE, 10))).count, 1);
  assert.equal((await verify(vault)).isValid, true);
});

test('a ledger recovers automatically when commits succeed again', async (t) => {
  const mishaps: Mishap[] = [];
  const vault = await openVault(t, { inFront: withMishaps(mishaps) });
  mishaps.push('before', 'before');
  assert.equal(await outcomeOf(put(vault, 'a')), 'UNAVAILABLE');
  assert.equal(vault.ledger.state, 'failing');
  await until(() => vault.ledger.state === 'ok', 'the ledger to recover without a caller');
  assert.deepEqual(mishaps, []);
  assert.equal(await outcomeOf(put(vault, 'a')), 'ok');
  await assertMemoryIsTheStore(vault);
});

test('a commit whose success was not reported is rejected, and its changes are in effect from then on', async (t) => {
  const mishaps: Mishap[] = [];
  const vault = await openVault(t, { inFront: withMishaps(mishaps) });
  await put(vault, 'prod/key', 'v');
  mishaps.push('after');
  const outcomes = await Promise.all([
    outcomeOf(get(vault, 'prod/key', admin('once'))),
    outcomeOf(vault.ledger.submit(createPolicy.operation(admin(), draft('made')))),
    outcomeOf(vault.ledger.submit(remove(admin(), toPath('prod/key')))),
  ]);
  assert.deepEqual(outcomes, ['UNAVAILABLE', 'UNAVAILABLE', 'UNAVAILABLE']);
  assert.equal(await outcomeOf(get(vault, 'prod/key')), 'NOT_FOUND');
  assert.equal((await vault.ledger.submit(readPolicy.operation(admin(), 'made' as PolicyName))).name, 'made');
  const once = (await readLog(vault.real)).filter((entry) => entry.request_id === 'once');
  assert.equal(once.length, 1);
  await assertMemoryIsTheStore(vault);
  assert.equal((await verify(vault)).isValid, true);
});

test('a storage failure during a write stops the ledger, is reported once, and is never retried', async (t) => {
  let commits = 0;
  const failure = new StoreError('fatal', 'a made-up failure of a sync');
  const vault = await openVault(t, {
    inFront: withCommit(async () => {
      commits += 1;
      throw failure;
    }),
  });
  const waiting = Array.from({ length: 200 }, () => outcomeOf(put(vault, 'a')));
  assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['UNAVAILABLE']));
  assert.equal(vault.ledger.state, 'failed');
  assert.deepEqual(vault.broken, [failure]);
  assert.equal(await outcomeOf(put(vault, 'a')), 'UNAVAILABLE');
  assert.equal(await outcomeOf(get(vault, 'a')), 'UNAVAILABLE');
  await settle();
  assert.equal(commits, 1);
});

test('for any failing commits, every acknowledged operation is in the log once, and memory equals the store', async (t) => {
  const mishap = fc.constantFrom<Mishap>('none', 'none', 'none', 'before', 'after');
  const act = fc.constantFrom('put', 'get', 'remove', 'register', 'deregister', 'allow', 'forbid');
  const together = fc.array(fc.tuple(act, fc.constantFrom('1', '2')), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(mishap, { maxLength: 20 }),
      fc.array(together, { maxLength: 12 }),
      async (mishaps, turns) => {
        const left: Mishap[] = [];
        const vault = await openVault(t, { inFront: withMishaps(left) });
        await Promise.all([put(vault, 'p1'), put(vault, 'p2')]);
        left.push(...mishaps);
        const answered: string[] = [];
        let refused = 0;
        const calls: Record<string, (which: string, id: string) => Promise<unknown>> = {
          put: (which, id) => put(vault, `p${which}`, 'v', admin(id)),
          get: (which, id) => get(vault, `p${which}`, admin(id)),
          remove: (which, id) => vault.ledger.submit(remove(admin(id), toPath(`p${which}`))),
          register: (which, id) => register(vault, `ci-${which}`, admin(id)),
          deregister: (which, id) => deregisterAgent(vault, admin(id), `ci-${which}` as AgentName),
          allow: (which, id) => vault.ledger.submit(createPolicy.operation(admin(id), draft(`policy-${which}`))),
          forbid: (which, id) =>
            vault.ledger.submit(deletePolicy.operation(admin(id), `policy-${which}` as PolicyName)),
        };
        for (const [turn, acts] of turns.entries()) {
          await Promise.all(
            acts.map(async ([kind, which], index) => {
              const id = `t${turn}-${index}`;
              const outcome = await outcomeOf(calls[kind]?.(which, id) ?? Promise.reject(new Error(kind)));
              if (outcome === 'UNAVAILABLE') refused += 1;
              else answered.push(id);
              assert.doesNotMatch(outcome, /bug/);
            }),
          );
        }
        left.length = 0;
        await put(vault, 'last');
        const ids = (await readLog(vault.real)).map((entry) => entry.request_id);
        for (const id of answered) assert.equal(ids.filter((other) => other === id).length, 1, id);
        assert.equal(new Set(ids).size, ids.length);
        assert.equal(refused > 0, vault.failures.length > 0);
        await assertMemoryIsTheStore(vault);
        assert.equal((await verify(vault)).isValid, true);
        await vault.real.close();
      },
    ),
    runs(8, 25),
  );
});
