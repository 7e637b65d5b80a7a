// The ledger: decide, record, commit, then respond; in batches, in order, and with a bounded queue.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentId } from '../../src/core/names.ts';
import type { Operation } from '../../src/core/operation.ts';
import { newId } from '../../src/crypto/primitives.ts';
import { ApiError } from '../../src/engine/errors.ts';
import { readHead } from '../../src/store/audit-log.ts';
import type { StoreTransaction, WriteSet } from '../../src/store/stored-data.ts';
import { registerAgent } from '../../src/vault/agents/agent-operations.ts';
import { serviceEvent } from '../../src/vault/audit/lifecycle.ts';
import { remove } from '../../src/vault/credentials/credential-operations.ts';
import { addKeySlot } from '../../src/vault/keys/key-operations.ts';
import type { SlotId, SlotName } from '../../src/vault/keys/keyset.ts';
import { intent, result } from '../core/intents.ts';
import { runVerifier, toExport } from '../crypto/python-verifier.ts';
import { newAgentKey, toName } from '../vault/agents-fixture.ts';
import {
  admin,
  assertMemoryIsTheStore,
  get,
  inFrontOf,
  newGate,
  openVault,
  outcomeOf,
  put,
  readLog,
  SILENT,
  settle,
  toPath,
  until,
  verify,
  withCommit,
} from '../vault/fixture.ts';

const RECORDED = serviceEvent('service.start', null);

test('no response is sent before its entry is on disk', async (t) => {
  let gate = newGate();
  gate.open();
  // Registered before the vault's own clean-up, because a closing store waits for the batch.
  t.after(() => gate.open());
  let commits = 0;
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      commits += 1;
      await gate.pass;
      await commit();
    }),
  });
  await put(vault, 'prod/key', 'the value');
  gate = newGate();
  let answer: string | null = null;
  const retrieved = get(vault, 'prod/key', admin('held')).then((value) => {
    answer = value;
  });
  await until(() => commits === 2, 'its batch is decided');
  await settle();
  assert.equal(answer, null);
  assert.equal(
    (await readLog(vault.real)).some((entry) => entry.request_id === 'held'),
    false,
  );
  gate.open();
  await retrieved;
  assert.equal(answer, 'the value');
  assert.equal(
    (await readLog(vault.real)).some((entry) => entry.request_id === 'held'),
    true,
  );
});

test('a row with a value that breaks its rule fails its own operation, and neither the batch nor memory changes', async (t) => {
  const vault = await openVault(t);
  const agent = { id: newId() as AgentId, name: toName('ci'), description: '', publicKey: newAgentKey().publicKey };
  const slot = { id: newId() as SlotId, name: 'bao' as SlotName, kind: 'transit', createdAt: 0 } as const;
  const { publicKey } = agent;
  const outcomes = await Promise.all([
    put(vault, 'prod/first'),
    vault.ledger.submit(registerAgent(admin(), { ...agent, description: 'a\u0000b' })).catch(String),
    vault.ledger.submit(registerAgent(admin(), { ...agent, description: 'x'.repeat(70_000) })).catch(String),
    vault.ledger
      .submit(addKeySlot(admin(), { ...slot, publicKey, parameters: { ciphertext: '\ud800' } }))
      .catch(String),
    put(vault, 'prod/second'),
  ]);
  for (const outcome of outcomes.slice(1, 4))
    assert.match(String(outcome), /^Error: A row was not stored, .*: (?:description|parameters) /);
  assert.deepEqual(
    (await readLog(vault.real)).map(({ resource }) => resource),
    ['prod/first', 'prod/second'],
  );
  await assertMemoryIsTheStore(vault);
});

test('no response is sent before the commit has returned, even if it is on disk', async (t) => {
  let gate = newGate();
  gate.open();
  // Registered before the vault's own clean-up, because a closing store waits for the batch.
  t.after(() => gate.open());
  let committed = 0;
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      await commit();
      committed += 1;
      await gate.pass;
    }),
  });
  await put(vault, 'prod/key');
  gate = newGate();
  const answers: string[] = [];
  const asked = [get(vault, 'prod/key', admin('late')), get(vault, 'none')].map(async (answer) =>
    answers.push(await outcomeOf(answer)),
  );
  await until(() => committed === 2, 'the batch is committed');
  await settle();
  assert.equal(
    (await readLog(vault.real)).some((entry) => entry.request_id === 'late'),
    true,
  );
  assert.deepEqual(answers, []);
  gate.open();
  await Promise.all(asked);
  assert.deepEqual(answers, ['ok', 'NOT_FOUND']);
});

test('concurrent operations share batches, and each batch is one transaction', async (t) => {
  const batches: WriteSet[] = [];
  const gate = newGate();
  // Registered before the vault's own clean-up, because a closing store waits for the batch.
  t.after(() => gate.open());
  const vault = await openVault(t, {
    inFront: withCommit(async (batch, commit) => {
      batches.push(batch);
      if (batches.length === 2) await gate.pass;
      await commit();
    }),
  });
  await put(vault, 'prod/key');
  const first = Array.from({ length: 30 }, () => get(vault, 'prod/key'));
  await until(() => batches.length === 2, 'the first batch is decided');
  // Operations that arrive while a batch is synced wait for the next one.
  const second = Array.from({ length: 32 }, () => get(vault, 'prod/key'));
  await settle();
  assert.equal(batches.length, 2);
  gate.open();
  await Promise.all([...first, ...second]);
  assert.deepEqual(
    batches.map(({ entries }) => entries.length),
    [1, 30, 32],
  );
  const many = Array.from({ length: 150 }, () => get(vault, 'prod/key'));
  await Promise.all(many);
  const sizes = batches.slice(3).map(({ entries }) => entries.length);
  assert.ok(sizes.length <= 5, `150 concurrent operations took ${sizes.length} transactions`);
  assert.equal(
    sizes.reduce((sum, size) => sum + size, 0),
    150,
  );
  assert.equal((await verify(vault)).isValid, true);
});

test('an operation without an entry commits nothing', async (t) => {
  const batches: WriteSet[] = [];
  const vault = await openVault(t, {
    inFront: withCommit(async (batch, commit) => {
      batches.push(batch);
      await commit();
    }),
  });
  await Promise.all(Array.from({ length: 10 }, () => vault.ledger.submit(SILENT)));
  assert.deepEqual(batches, []);
});

test('responses and entries have the order of the operations', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key');
  const ids = Array.from({ length: 200 }, (_, index) => `q${index}`);
  const answered: string[] = [];
  await Promise.all(
    ids.map(async (id, index) => {
      await outcomeOf(get(vault, index % 3 === 0 ? 'none' : 'prod/key', admin(id)));
      answered.push(id);
    }),
  );
  assert.deepEqual(answered, ids);
  const entries = await readLog(vault.real);
  assert.deepEqual(
    entries.slice(1).map(({ request_id }) => request_id),
    ids,
  );
});

test('each operation of a batch sees the changes of the earlier ones', async (t) => {
  const vault = await openVault(t);
  const path = toPath('prod/key');
  const outcomes = await Promise.all([
    outcomeOf(get(vault, path)),
    outcomeOf(put(vault, path, 'first')),
    get(vault, path),
    outcomeOf(put(vault, path, 'second')),
    get(vault, path),
    outcomeOf(vault.ledger.submit(remove(admin(), path))),
    outcomeOf(get(vault, path)),
    outcomeOf(put(vault, path, 'third')),
    get(vault, path),
  ]);
  assert.deepEqual(outcomes, ['NOT_FOUND', 'ok', 'first', 'ok', 'second', 'ok', 'NOT_FOUND', 'ok', 'third']);
  assert.equal(await get(vault, path), 'third');
});

test('a bug in one operation affects only its caller', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'prod/key', 'v');
  const buggy: Operation<null> = {
    ...SILENT,
    decide() {
      throw new TypeError('a bug');
    },
  };
  const before = await readLog(vault.real);
  const outcomes = await Promise.all([
    get(vault, 'prod/key'),
    outcomeOf(vault.ledger.submit(buggy)),
    get(vault, 'prod/key'),
  ]);
  assert.deepEqual(outcomes, ['v', 'bug: TypeError: a bug', 'v']);
  assert.equal((await readLog(vault.real)).length, before.length + 2);
  assert.deepEqual([vault.failures, vault.ledger.state], [[], 'ok']);
  assert.equal((await verify(vault)).isValid, true);
});

test('every transaction is closed before the next one begins, whatever fails', async (t) => {
  let open = 0;
  const vault = await openVault(t, {
    inFront: (store) =>
      inFrontOf(store, {
        async begin(keys): Promise<StoreTransaction> {
          assert.equal(open, 0, 'two transactions were open');
          const turn = await store.begin(keys);
          open += 1;
          const close = <T>(work: Promise<T>): Promise<T> =>
            work.finally(() => {
              open -= 1;
            });
          return {
            found: turn.found,
            shared: turn.shared,
            commit: (batch) => close(turn.commit(batch)),
            rollback: () => close(turn.rollback()),
          };
        },
      }),
  });
  await put(vault, 'prod/key');
  await vault.ledger.submit(SILENT);
  assert.equal(open, 0);
  // Decided without an error, but its change cannot be stored.
  const unusable: Operation<null> = {
    ...SILENT,
    decide: (known, moment) => ({ ...RECORDED.decide(known, moment), changes: [{ kind: 'addVersion' } as never] }),
  };
  assert.equal(await outcomeOf(vault.ledger.submit(unusable)), 'UNAVAILABLE');
  assert.equal(open, 0, 'a failed transaction was neither committed nor rolled back');
  assert.equal(await get(vault, 'prod/key'), 'value of prod/key');
  assert.equal((await verify(vault)).isValid, true);
});

test('a full queue rejects immediately, and every operation in it gets a result', async (t) => {
  const gate = newGate();
  // Registered before the vault's own clean-up, because a closing store waits for the batch.
  t.after(() => gate.open());
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      await gate.pass;
      await commit();
    }),
  });
  const held = vault.ledger.submit(RECORDED);
  await settle();
  const taken = Array.from({ length: 1024 }, () => outcomeOf(vault.ledger.submit(SILENT)));
  const refusals: unknown[] = [];
  for (const operation of [SILENT, RECORDED]) {
    vault.ledger.submit(operation).then(
      () => refusals.push('answered'),
      (fault) => refusals.push(fault),
    );
  }
  await settle();
  assert.equal(refusals.length, 2, 'the caller was left waiting');
  for (const refusal of refusals) {
    assert.ok(refusal instanceof ApiError, String(refusal));
    const { code, retryAfterSeconds } = refusal;
    assert.deepEqual([code, retryAfterSeconds], ['UNAVAILABLE', 1]);
  }
  gate.open();
  await held;
  assert.deepEqual(new Set(await Promise.all(taken)), new Set(['ok']));
  assert.equal(await outcomeOf(vault.ledger.submit(SILENT)), 'ok');
  assert.deepEqual(vault.failures, []);
});

test('close waits for every operation, and later ones are rejected before they reach the closed store', async (t) => {
  const vault = await openVault(t);
  const answers: string[] = [];
  for (let i = 0; i < 100; i++) void vault.ledger.submit(RECORDED).then(() => answers.push('ok'));
  await vault.ledger.close();
  await settle(1);
  assert.equal(answers.length, 100);
  await vault.approvals.stop();
  await vault.real.close();
  assert.equal(await outcomeOf(vault.ledger.submit(RECORDED)), 'UNAVAILABLE');
  await vault.ledger.close();
  assert.deepEqual([vault.broken, vault.failures], [[], []]);
});

test('a caller whose operations fill the queue is rejected before its request is read, until the queue has capacity', async (t) => {
  let gate = newGate();
  gate.open();
  t.after(() => gate.open());
  const vault = await openVault(t, {
    inFront: withCommit(async (_batch, commit) => {
      await gate.pass;
      await commit();
    }),
  });
  gate = newGate();
  const { auth } = RECORDED;
  vault.ledger.assertCapacity(auth);
  const waiting = Array.from({ length: 1200 }, () => vault.ledger.submit(RECORDED).catch(() => undefined));
  assert.throws(() => vault.ledger.assertCapacity(auth), { code: 'UNAVAILABLE' });
  gate.open();
  await Promise.all(waiting);
  vault.ledger.assertCapacity(auth);
});

// An intent and its result: both entries have one id, and the chain is valid.

test('the result of an intent is recorded later under the same id, after other entries and a restart', async (t) => {
  const vault = await openVault(t);
  const id = await vault.ledger.submit(intent('begin'));
  await put(vault, 'other');
  const again = await openVault(t, { directory: vault.directory });
  await again.ledger.submit(result('end', id, 'allowed'));
  const entries = await readLog(again.real);
  const own = entries.filter((entry) => entry.id === id);
  assert.deepEqual(
    own.map((entry) => [entry.request_id, entry.seq]),
    [
      ['begin', 1],
      ['end', 3],
    ],
  );
  assert.equal((await verify(again)).isValid, true);
  const { head } = await again.real.run(readHead());
  assert.ok(head);
  const auditKey = again.keys.audit.export().toString('base64');
  const verdict = await runVerifier(t, { text: toExport(entries), head, auditKey });
  assert.equal(verdict.status, 0, verdict.errors);
});
