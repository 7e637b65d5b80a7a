// Retries during a sync: neither a request nor its repeat is answered before its batch is durable.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { readCredentialMetadata } from '../../src/vault/credentials.ts';
import type { Vault } from '../../src/vault/vault.ts';
import { admin, openVault, put, settle, toPath } from '../vault/fixture.ts';
import { keyed } from '../vault/retry-fixture.ts';

const versionsOf = async (vault: Vault, path: string): Promise<number> =>
  (await readCredentialMetadata(vault, admin(), toPath(path))).versions.length;

test('a repeat is not answered before the first request is durable', async (t) => {
  const { promise: disk, resolve: release } = Promise.withResolvers<void>();
  let isHeld = false;
  t.after(() => release());
  const vault = await openVault(t, { syncFile: () => (isHeld ? disk : Promise.resolve()) });
  isHeld = true;
  const answered: string[] = [];
  const first = put(vault, 'a', 'v', keyed(vault)).then(() => answered.push('first'));
  await settle();
  // The number of operations that form a separate batch during a sync.
  const repeats = Array.from({ length: 40 }, () =>
    put(vault, 'a', 'v', keyed(vault)).then(() => answered.push('repeat')),
  );
  await settle();
  await sleep(30);
  assert.deepEqual(answered, []);
  release();
  await Promise.all([first, ...repeats]);
  assert.equal(await versionsOf(vault, 'a'), 1);
});

test('if the sync then fails, the outcome of the repeat and of the first request is unknown', async (t) => {
  const { promise: disk, reject: fail } = Promise.withResolvers<void>();
  let isHeld = false;
  const vault = await openVault(t, { syncFile: () => (isHeld ? disk : Promise.resolve()) });
  isHeld = true;
  const messageOf = () => put(vault, 'a', 'v', keyed(vault)).then(String, (error: Error) => error.message);
  const first = messageOf();
  await settle();
  const repeats = Array.from({ length: 40 }, messageOf);
  await settle();
  fail(new Error('EIO'));
  const messages = new Set(await Promise.all([first, ...repeats]));
  assert.equal(messages.size, 1);
  assert.match([...messages].join(), /^It is unknown whether the request was recorded; /);
});
