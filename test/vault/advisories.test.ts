// The search for advisories: one for all callers, and none that nobody waits for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLeaseSigns } from '../../src/store/attention.ts';
import { Advisories } from '../../src/vault/attention.ts';
import { CONNECTED, inFrontOfReads, openVault, settle } from './fixture.ts';

test('callers share a search, it ends when all have left, and one that took long is not repeated at once', async (t) => {
  const { real, clock } = await openVault(t);
  let steps = 0;
  let isEndless = false;
  const store = inFrontOfReads(real, readLeaseSigns, async (read) => {
    steps += 1;
    return isEndless ? { ending: [], credentialIds: [], next: 1 } : read();
  });
  const timer = { now: () => 0 };
  const advisories = new Advisories({ store, clock }, timer);
  await Promise.all(Array.from({ length: 50 }, () => advisories.read(CONNECTED)));
  assert.equal(steps, 2);

  isEndless = true;
  const leaving = new AbortController();
  const searches = Array.from({ length: 50 }, () => advisories.read(leaving.signal));
  await settle();
  leaving.abort(new Error('gone'));
  for (const search of searches) await assert.rejects(search, /gone/);
  await settle();
  const taken = steps;
  await settle();
  assert.equal(steps, taken);

  isEndless = false;
  // The search takes 60 ms.
  let now = 1;
  timer.now = () => (now += 60);
  const long = await advisories.read(CONNECTED);
  timer.now = () => now + 1000;
  assert.equal(await advisories.read(CONNECTED), long);
  timer.now = () => now + 1200;
  assert.notEqual(await advisories.read(CONNECTED), long);
});
