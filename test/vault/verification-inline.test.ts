/** Verification of a log that is too short for threads: it runs on the service's thread, one step at a time. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readEntries } from '../../src/store/audit-log.ts';
import { authorizeVerification, readProgress } from '../../src/vault/audit/audit.ts';
import { THREADS_THRESHOLD } from '../../src/vault/audit/verification/verifier.ts';
import type { Scope } from '../kit/directory.ts';
import { admin, inFrontOfReads, openVault, put, settle, verify } from './fixture.ts';
import { lengthenLog } from './verification-log.ts';

const ENTRIES = 6000;
assert.ok(ENTRIES < THREADS_THRESHOLD);

/** A vault that calls the test before each read of entries. */
async function openShortVault(scope: Scope, onReading: () => void) {
  const vault = await openVault(scope, {
    inFront: (store) =>
      inFrontOfReads(store, readEntries, (read) => {
        onReading();
        return read();
      }),
  });
  await put(vault, 'a/b');
  await lengthenLog(vault.real, vault.keys, ENTRIES);
  return vault;
}

test('it ends with the running step when its caller disconnects, and another one can follow', async (t) => {
  const leaving = new AbortController();
  let readings = 0;
  const vault = await openShortVault(t, () => {
    readings += 1;
    if (readings === 3) leaving.abort(new Error('gone'));
  });
  const verification = (await authorizeVerification(vault, admin()))(leaving.signal);
  await assert.rejects(verification, /gone/);
  // Waits as long as all other steps together would take.
  await settle(500);
  assert.equal(readings, 3);
  assert.equal(await readProgress(vault, admin()), null);
  const whole = await verify(vault);
  assert.equal(whole.isValid ? whole.entries : whole.reason, ENTRIES);
  assert.equal(readings > 10, true, `${readings} readings`);
});

test('it reads at most one step if its caller disconnected before it began', async (t) => {
  let readings = 0;
  const vault = await openShortVault(t, () => (readings += 1));
  const verify = await authorizeVerification(vault, admin());
  await assert.rejects(verify(AbortSignal.abort(new Error('gone'))), /gone/);
  await settle(500);
  assert.equal(readings <= 1, true, `${readings} readings`);
  assert.equal(await readProgress(vault, admin()), null);
});

test('a log without entries is valid, and has neither a first nor a last entry', async (t) => {
  assert.deepEqual(await verify(await openVault(t)), { isValid: true, entries: 0, firstEntry: null, lastEntry: null });
});
