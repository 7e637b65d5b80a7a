// A policy with `expires_at` grants until then, and is deleted by the first decision afterwards, which the log records.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parsePath } from '../../src/core/path.ts';
import { listCredentials } from '../../src/vault/credentials/credentials.ts';
import { deletePolicy, listPolicies, replacePolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy, type PolicyInput } from '../../src/vault/policies/policy.ts';
import { UseLimits } from '../../src/vault/use/use-limits.ts';
import { as, enrol, logIn, newAgentKey } from './agents-fixture.ts';
import {
  admin,
  CONNECTED,
  get,
  type OpenedVault,
  type OpenOptions,
  openVault,
  outcomeOf,
  put,
  readLog,
  verify,
} from './fixture.ts';

const NOW = Date.UTC(2026, 0, 31);
const END = NOW + 60_000;
const GRANT = { principal: 'agent:ci', resources: ['prod/*'], actions: ['retrieve'] } satisfies Partial<PolicyInput>;

const replace = (vault: OpenedVault, name: string, expiresAt: number | null) =>
  vault.ledger.submit(
    replacePolicy.operation(
      admin(),
      Policy.parse({
        ...GRANT,
        name,
        ...(expiresAt === null ? {} : { expires_at: new Date(expiresAt).toISOString() }),
      }),
    ),
  );

async function openAt(t: Parameters<typeof openVault>[0], hands: { now: number }, options: OpenOptions = {}) {
  return openVault(t, { time: { wall: () => hands.now, monotonic: () => hands.now }, ...options });
}

test('a policy grants until it expires, and the log says that the service deleted it', async (t) => {
  const hands = { now: NOW };
  const vault = await openAt(t, hands);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  await put(vault, 'prod/key', 'v');
  await replace(vault, 'brief', END);
  const ci = await as(vault, (await logIn(vault, 'ci', key)).token.reveal());

  hands.now = END - 1;
  assert.equal(await outcomeOf(get(vault, 'prod/key', ci)), 'ok');
  hands.now = END;
  assert.equal(await outcomeOf(get(vault, 'prod/key', ci)), 'ACCESS_DENIED');
  assert.deepEqual(await vault.ledger.submit(listPolicies.operation(admin(), null)), []);

  const ended = (await readLog(vault.real)).filter(({ event_type }) => event_type === 'policy.delete');
  assert.deepEqual(
    ended.map(({ agent_name, resource, result, reason, state }) => ({ agent_name, resource, result, reason, state })),
    [{ agent_name: 'service', resource: 'policy:brief', result: 'allowed', reason: 'it expired', state: 'removed' }],
  );
  assert.equal((await verify(vault)).isValid, true);
});

test('a policy that expired while the vault was stopped grants nothing after the start', async (t) => {
  const hands = { now: NOW };
  const vault = await openAt(t, hands);
  await replace(vault, 'brief', END);
  await replace(vault, 'later', END + 1);
  await replace(vault, 'lasting', null);
  hands.now = END;
  const again = await openAt(t, hands, { directory: vault.directory });
  const names = async () => (await again.ledger.read(listPolicies.operation(admin(), null))).map(({ name }) => name);
  assert.deepEqual(await names(), ['lasting', 'later']);
  hands.now = END + 1;
  assert.deepEqual(await names(), ['lasting']);
});

test('a replacement extends a policy, or lets it last; a time in the past is rejected and changes nothing', async (t) => {
  const hands = { now: NOW };
  const vault = await openAt(t, hands);
  for (const name of ['extended', 'lasting']) await replace(vault, name, END);
  await replace(vault, 'extended', END + 1000);
  await replace(vault, 'lasting', null);
  await assert.rejects(replace(vault, 'lasting', NOW), {
    code: 'INVALID_REQUEST',
    message: 'expires_at: must be in the future',
  });
  hands.now = END;
  const left = await vault.ledger.submit(listPolicies.operation(admin(), null));
  assert.deepEqual(
    left.map(({ name, expiresAt }) => [name, expiresAt]),
    [
      ['extended', END + 1000],
      ['lasting', null],
    ],
  );
});

test('in recovery mode an expired policy is not deleted, and reads succeed', async (t) => {
  const hands = { now: NOW };
  const vault = await openAt(t, hands);
  await replace(vault, 'brief', END);
  hands.now = END;
  const again = await openAt(t, hands, { directory: vault.directory, isReadOnly: true });
  const list = listPolicies.operation(admin(), null);
  for (const reading of [again.ledger.read(list), again.ledger.submit(list)]) {
    assert.deepEqual(
      (await reading).map(({ name }) => name),
      ['brief'],
    );
  }
});

test('a use in the moment in which a policy without limits expires is counted under the limits of the other', async (t) => {
  const hands = { now: NOW };
  const vault = await openAt(t, hands);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const uses = { principal: 'agent:ci', resources: ['prod/*'], actions: ['use'] } satisfies Partial<PolicyInput>;
  for (const draft of [
    { ...uses, name: 'strict', limits: { uses_per_hour: 1 } },
    { ...uses, name: 'brief', max_ttl: 1, expires_at: new Date(END).toISOString() },
  ])
    await vault.ledger.submit(replacePolicy.operation(admin(), Policy.parse(draft)));
  const limits = new UseLimits(vault.ledger, () => vault.clock.now());
  t.after(() => limits.stop());
  const ci = await as(vault, (await logIn(vault, 'ci', key)).token.reveal());
  hands.now = END;
  const admitted = await Promise.allSettled(Array.from({ length: 5 }, () => limits.admit(ci, parsePath('prod/key'))));
  assert.equal(admitted.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('a list of credentials that is read slowly follows the policies', async (t) => {
  const hands = { now: NOW };
  const vault = await openAt(t, hands);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  for (let n = 0; n < 501; n++) await put(vault, `prod/key-${String(n).padStart(3, '0')}`, 'v');
  const listing = { ...GRANT, name: 'lists', actions: ['list'] } satisfies PolicyInput;
  await vault.ledger.submit(replacePolicy.operation(admin(), Policy.parse(listing)));
  const ci = await as(vault, (await logIn(vault, 'ci', key)).token.reveal());
  let monotonic = 0;
  t.mock.method(performance, 'now', () => monotonic);
  const { rows } = await listCredentials(vault, ci, { type: null }, null, CONNECTED);
  const batches = rows[Symbol.asyncIterator]();
  assert.equal((await batches.next()).value?.length, 500);
  await vault.ledger.submit(deletePolicy.operation(admin(), Policy.parseKey('lists')));
  monotonic += 1000;
  assert.deepEqual(await batches.next(), { done: true, value: undefined });
});
