// Reads beside batches: what they see, what they wait for, and what they leave to a batch.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PolicyName } from '../../src/core/names.ts';
import { authorize } from '../../src/core/operation.ts';
import { StoreError } from '../../src/store/errors.ts';
import { createPolicy, listPolicies } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { intent } from '../core/intents.ts';
import { as, enrol, logIn, newAgentKey } from '../vault/agents-fixture.ts';
import {
  admin,
  inFrontOf,
  newGate,
  type OpenedVault,
  openVault,
  outcomeOf,
  put,
  readLog,
  SILENT,
  settle,
  until,
  withCommit,
} from '../vault/fixture.ts';

const draft = (name: string) =>
  Policy.parse({ name, principal: 'agent:ci', resources: ['prod/*'], actions: ['retrieve'] });
const create = ({ ledger }: OpenedVault, name: string) => ledger.submit(createPolicy.operation(admin(), draft(name)));
const list = async ({ ledger }: OpenedVault): Promise<PolicyName[]> =>
  (await ledger.read(listPolicies.operation(admin(), null))).map(({ name }) => name);

/** A vault whose commits wait at a gate, or fail there; and how many wait. */
async function vaultWithGate(scope: Parameters<typeof openVault>[0]) {
  const gate = newGate();
  const held = { count: 0, isOn: false, fails: false, open: gate.open };
  const inFront = withCommit(async (_batch, commit) => {
    if (held.isOn) {
      held.count += 1;
      await gate.pass;
    }
    if (held.fails) throw new StoreError('unavailable', 'a made-up failure');
    await commit();
  });
  scope.after(() => gate.open());
  return { vault: await openVault(scope, { inFront }), held };
}

test('a read begins no transaction, and sees the batch before it', async (t) => {
  let begun = 0;
  const vault = await openVault(t, {
    inFront: (store) =>
      inFrontOf(store, {
        begin(keys) {
          begun += 1;
          return store.begin(keys);
        },
      }),
  });
  await create(vault, 'seen');
  const before = begun;
  assert.deepEqual(await list(vault), ['seen']);
  assert.deepEqual(await Promise.all([list(vault), list(vault)]), [['seen'], ['seen']]);
  assert.equal(begun, before);
});

test('a read does not wait for a commit that changes no agent, operator or policy', async (t) => {
  const { vault, held } = await vaultWithGate(t);
  await create(vault, 'known');
  held.isOn = true;
  const stored = put(vault, 'prod/key');
  await until(() => held.count === 1, 'the commit');
  assert.deepEqual(await list(vault), ['known']);
  held.open();
  await stored;
});

test('a read does not see a policy whose commit is not complete, and never one whose commit fails', async (t) => {
  const { vault, held } = await vaultWithGate(t);
  held.isOn = true;
  held.fails = true;
  const created = outcomeOf(create(vault, 'failed'));
  await until(() => held.count === 1, 'the commit');
  let listed: readonly string[] | null = null;
  const read = list(vault).then((names) => {
    listed = names;
  });
  await settle();
  assert.equal(listed, null);
  held.open();
  assert.equal(await created, 'UNAVAILABLE');
  held.fails = false;
  await read;
  assert.deepEqual(listed, []);
});

test('a read waits for an operation without a waiting caller, whose request has its response already', async (t) => {
  const { vault, held } = await vaultWithGate(t);
  held.isOn = true;
  const deferred = vault.ledger.submitWithNext(intent('deferred'));
  await until(() => held.count === 1, 'the commit');
  let isRead = false;
  const read = vault.ledger.read(SILENT).then(() => {
    isRead = true;
  });
  await settle();
  assert.equal(isRead, false);
  held.open();
  await Promise.all([deferred, read]);
});

test('a rejected read is recorded, and one after a deferred operation sees it', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const context = await as(vault, (await logIn(vault, 'ci', key)).token.reveal());
  assert.equal(await outcomeOf(vault.ledger.read(authorize(context, 'audit.list'))), 'ACCESS_DENIED');
  const last = (await readLog(vault.real)).at(-1);
  assert.deepEqual([last?.event_type, last?.result, last?.request_id], ['audit.list', 'denied', context.requestId]);
  const deferred = vault.ledger.submitWithNext(createPolicy.operation(admin(), draft('deferred')));
  assert.deepEqual(await list(vault), ['deferred']);
  await deferred;
});
