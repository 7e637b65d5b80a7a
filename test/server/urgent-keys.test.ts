// Reads of the keyset and of its recorded state do not wait behind lists, which may hold every other connection.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { findRollback } from '../../src/server/rollback-detection.ts';
import { RollbackMarker } from '../../src/server/rollback-marker.ts';
import { VaultGate } from '../../src/server/vault-gate.ts';
import { readNewestState } from '../../src/store/recorded-states.ts';
import { readStoredKeys } from '../../src/store/vault-metadata.ts';
import { admin, inFrontOf, openVault, put, readLog } from '../vault/fixture.ts';

test('a lock, a checkpoint, a check of the state and of a rollback read the keys urgently', async (t) => {
  const urgencies: boolean[] = [];
  const vault = await openVault(t, {
    inFront: (store) =>
      inFrontOf(store, {
        run(procedure, priority) {
          const isOfKeys = procedure instanceof readStoredKeys || procedure instanceof readNewestState;
          if (isOfKeys) urgencies.push(priority === 'urgent');
          return store.run(procedure, priority);
        },
      }),
  });
  await put(vault, 'a');
  const running = { vault, loss: null, close: async () => undefined };
  const gate = new VaultGate(
    async () => running as never,
    false,
    (line) => assert.fail(line),
  );
  await gate.start();
  const marker = new RollbackMarker(join(vault.directory, 'rollback.marker'), vault.keys);
  t.after(() => marker.close());
  const [entry] = await readLog(vault.real);
  assert.ok(entry);
  await marker.keep(entry);
  const readers = {
    checkpoint: () => vault.checkpoints.sign(),
    state: () => vault.verifier.state.check(new AbortController().signal, true),
    rollback: () => findRollback(vault.store, { marker, checkpointFiles: [] }, vault.keys),
    lock: () => gate.lock(admin()),
  };
  for (const [name, read] of Object.entries(readers)) {
    urgencies.length = 0;
    await read();
    assert.ok(urgencies.length > 0, name);
    assert.ok(!urgencies.includes(false), name);
  }
});
