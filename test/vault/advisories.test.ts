// The search for advisories: one for all callers, and none that nobody waits for.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readLeaseSigns } from '../../src/store/attention.ts';
import { Advisories } from '../../src/vault/overview/advisories.ts';
import { CONNECTED, inFrontOfReads, openVault, settle } from './fixture.ts';

test('callers share a search, it ends when all have left, and one of many steps is not repeated at once', async (t) => {
  const { real, clock } = await openVault(t);
  let steps = 0;
  let isEndless = false;
  let further = 0;
  const store = inFrontOfReads(real, readLeaseSigns, async (read) => {
    steps += 1;
    further -= 1;
    return isEndless || further >= 0 ? { ending: [], credentialIds: [], next: 1 } : read();
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
  // However long a short search takes, it is repeated.
  let now = 1;
  timer.now = () => (now += 60);
  assert.notEqual(await advisories.read(CONNECTED), await advisories.read(CONNECTED));
  further = 10;
  const long = await advisories.read(CONNECTED);
  timer.now = () => now + 1000;
  assert.equal(await advisories.read(CONNECTED), long);
  timer.now = () => now + 1200;
  assert.notEqual(await advisories.read(CONNECTED), long);
});
