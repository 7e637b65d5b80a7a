// A vault from before key slots existed gets its slot and its keyset at its next start, and everything stays valid.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readHead } from '../../src/store/audit-log.ts';
import { readStoredKeys } from '../../src/store/vault-metadata.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { openStore, STORE } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import { directoryWithKey, formerKeys, formerVault } from './former-vault.ts';
import { assertNoStart } from './vaults.ts';

const ACCEPT = ['--accept-rollback'];

test('the first start converts the vault: values, entries and keys stay, and every later start opens its slot', async (t) => {
  const dataDir = await formerVault(t);
  for (const flags of [ACCEPT, []]) {
    const service = await startTestService(t, flags, dataDir);
    assert.equal((await service.admin.get('/api/v1/credentials/a/b')).body.data.value, 'kept');
    assert.equal((await service.admin.get('/api/v1/audit/verify')).body.data.valid, true);
    // Each row got an entry with its state, once.
    const { total } = (await service.admin.get('/api/v1/audit?event_type=service.adopt')).body.meta;
    assert.equal(total, 5);
    const { state } = (await service.admin.get('/api/v1/audit/verify?state=true')).body.data;
    assert.deepEqual([state.problem_count, service.warnings.length <= 1], [0, true], service.warnings.join());
    await service.stop();
  }
  const converted = await vaultKeysOf(dataDir);
  const base64 = (key: { export(): Buffer }) => key.export().toString('base64');
  assert.equal(base64(converted.audit), base64(formerKeys.audit));
  assert.equal(base64(converted.row), base64(formerKeys.row));
  assert.deepEqual(converted.dataKeyIds, formerKeys.dataKeyIds);
  // The embedded vault has no rollback marker, which the operator accepted: its checkpoints begin under a second key.
  assert.equal(converted.signing.length, STORE === 'sqlite' ? 2 : 1);
  assert.equal(Buffer.from(converted.vaultId, 'base64url').length, 16);
});

test('another root key does not convert the vault and changes nothing', async (t) => {
  const dataDir = await formerVault(t);
  writeFileSync(join(dataDir, 'root.key'), `${Buffer.alloc(32, 6).toString('base64')}\n`);
  await assertNoStart(t, dataDir, /root\.key is not the root key of this vault/, ACCEPT);
});

test('a slot row of another vault opens nothing', async (t) => {
  const other = join(temporaryDirectory(t), 'data');
  await (await startTestService(t, [], other)).stop();
  const foreign = await openStore(other);
  const { slots } = await foreign.run(readStoredKeys());
  await foreign.close();
  const dataDir = directoryWithKey(t);
  await (await startTestService(t, [], dataDir)).stop();
  const store = await openStore(dataDir);
  const transaction = await store.begin([{ keySlots: true }]);
  const [own] = transaction.found.keySlots;
  assert.ok(own);
  const [slot] = slots;
  assert.ok(slot);
  const { head: current } = await store.run(readHead());
  assert.ok(current);
  const { durable } = await transaction.commit({
    entries: [],
    treeNodes: [],
    head: current,
    accesses: new Map(),
    changes: [
      { kind: 'removeKeySlot', id: own.id },
      { kind: 'putKeySlot', slot },
    ],
  });
  await durable;
  await store.close();
  await assertNoStart(t, dataDir, /root\.key is not the root key of this vault/);
});
