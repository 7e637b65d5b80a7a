// Retries after commits with an unknown outcome, and with rows that were altered outside Leasehold.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LeaseId } from '../../src/core/names.ts';
import type { Context } from '../../src/core/operation.ts';
import { StoreError } from '../../src/store/errors.ts';
import { readCredentialMetadata } from '../../src/vault/credentials/credentials.ts';
import { renewLease } from '../../src/vault/leases/lease-operations.ts';
import { revokeLeases } from '../../src/vault/leases/leases.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { executeSql } from '../kit/direct-db.ts';
import {
  admin,
  CONNECTED,
  get,
  type OpenedVault,
  openVault,
  outcomeOf,
  put,
  readLog,
  toPath,
  verify,
  withCommit,
} from './fixture.ts';
import { keyed, vaultWithLoss } from './retry-fixture.ts';

const versionsOf = async (vault: Vault, path: string): Promise<number> =>
  (await readCredentialMetadata(vault, admin(), toPath(path))).versions.length;
const entriesOf = async ({ real }: OpenedVault, event: string): Promise<number> =>
  (await readLog(real)).filter(({ event_type }) => event_type === event).length;

for (const [mishap, what] of [
  ['after', 'happened'],
  ['before', 'did not happen'],
] as const) {
  test(`a stored value whose commit ${what}, with unknown outcome, exists once after the retry`, async (t) => {
    const { vault, lose } = await vaultWithLoss(t);
    lose(mishap);
    assert.equal(await outcomeOf(put(vault, 'a', 'v', keyed(vault))), 'UNAVAILABLE');
    const credential = await put(vault, 'a', 'v', keyed(vault));
    assert.equal(credential.version, 1);
    assert.deepEqual(await put(vault, 'a', 'v', keyed(vault)), credential);
    assert.equal(await entriesOf(vault, 'credential.store'), 1);
    assert.equal(await versionsOf(vault, 'a'), 1);
    assert.equal(await get(vault, 'a'), 'v');
    assert.equal((await verify(vault)).isValid, true);
  });

  test(`every operation with a key is done once if its commit ${what}, with unknown outcome`, async (t) => {
    const { vault, lose } = await vaultWithLoss(t);
    await put(vault, 'a');
    await get(vault, 'a');
    const { lease_id: leaseId } = (await readLog(vault.real)).at(-1) ?? assert.fail();
    const policy = Policy.parse({ name: 'p', principal: 'agent:*', resources: ['a'], actions: ['retrieve'] });
    const everyLease = { agentName: null, path: toPath('a') };
    const operations = {
      'policy.create': (context: Context) => vault.ledger.submit(createPolicy.operation(context, policy)),
      'lease.renew': (context: Context) => vault.ledger.submit(renewLease(context, leaseId as LeaseId)),
      'lease.revoke': (context: Context) => revokeLeases(vault, context, everyLease, CONNECTED),
    };
    for (const [event, operation] of Object.entries(operations)) {
      lose(mishap);
      const outcome = await outcomeOf(operation(keyed(vault, event)));
      assert.equal(outcome, 'UNAVAILABLE');
      const retried = await operation(keyed(vault, event));
      assert.deepEqual(await operation(keyed(vault, event)), retried);
      assert.equal(await entriesOf(vault, event), 1, event);
      if (event === 'lease.revoke') assert.equal(retried, 1);
    }
  });
}

test('the error of a commit with unknown outcome says so and how to retry; other errors say that nothing was recorded', async (t) => {
  const messageOf = (answer: Promise<unknown>) =>
    answer.then(
      () => 'ok',
      (error: Error) => error.message,
    );
  for (const [kind, message] of [
    [
      'unknown',
      /^It is unknown whether the request was recorded; no value was returned\. .*Idempotency-Key.* safely\.$/,
    ],
    ['fatal', /^It is unknown whether the request was recorded; no value was returned\./],
    ['unavailable', /^The server could not record the request, and nothing was done\./],
  ] as const) {
    const vault = await openVault(t, {
      inFront: withCommit(async () => {
        throw new StoreError(kind, 'made up');
      }),
    });
    assert.match(await messageOf(put(vault, 'a')), message);
  }
});

/** Edits of the record of a path that a writer of the database may try. */
const ALTERED: Readonly<Record<string, (path: string) => string>> = {
  reply: (path) => `reply = replace(reply, '"version":1', '"version":9') WHERE reply LIKE '%"${path}"%'`,
  'no-reply': (path) => `reply = '' WHERE reply LIKE '%"${path}"%'`,
  agent: (path) => `agent_id = 'x' WHERE reply LIKE '%"${path}"%'`,
  request: (path) => `request_mac = 'x' WHERE reply LIKE '%"${path}"%'`,
  end: (path) => `expires_at = expires_at + 1 WHERE reply LIKE '%"${path}"%'`,
  'no-mac': (path) => `mac = '' WHERE reply LIKE '%"${path}"%'`,
  'mac-of-another': (path) =>
    `mac = (SELECT mac FROM idempotency_records WHERE reply LIKE '%"other"%') WHERE reply LIKE '%"${path}"%'`,
};

test('an altered idempotency record is ignored and replaced', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'other', 'v', keyed(vault, 'another'));
  for (const [path, assign] of Object.entries(ALTERED)) {
    await put(vault, path, 'v', keyed(vault, path));
    await executeSql(vault.directory, `UPDATE idempotency_records SET ${assign(path)}`);
    const again = await put(vault, path, 'v', keyed(vault, path));
    assert.equal(again.version, 2, path);
    assert.deepEqual(await put(vault, path, 'v', keyed(vault, path)), again);
    assert.equal(await versionsOf(vault, path), 2);
  }
});

test('an idempotency record moved to another id is ignored', async (t) => {
  const vault = await openVault(t);
  await put(vault, 'a', 'v', keyed(vault, 'one'));
  const { id } = keyed(vault, 'two').idempotency ?? assert.fail();
  await executeSql(vault.directory, `UPDATE idempotency_records SET id = '${id}'`);
  assert.equal((await put(vault, 'a', 'v', keyed(vault, 'two'))).version, 2);
});
