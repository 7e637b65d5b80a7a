// A database file of the schema before key slots existed.

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { GENESIS_MAC } from '../../src/core/audit.ts';
import { deriveKeys } from '../../src/crypto/keys.ts';
import { readMigrations } from '../../src/store/migrations.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { headWithoutTree } from '../kit/head.ts';
import { startTestService } from '../kit/service.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';

test('a database of the former schema is migrated, and its keys are converted', async (t) => {
  const rootKey = new Uint8Array(32).fill(5);
  const keys = deriveKeys(rootKey);
  const dataDir = join(temporaryDirectory(t), 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  writeFileSync(join(dataDir, 'root.key'), `${Buffer.from(rootKey).toString('base64')}\n`, { mode: 0o600 });
  const database = new DatabaseSync(join(dataDir, 'leasehold.db'));
  for (const { sql } of readMigrations('sqlite').slice(0, 2)) database.exec(sql);
  database.exec(`PRAGMA application_id = ${0x4c734864}; PRAGMA user_version = 2; PRAGMA journal_mode = WAL`);
  database.prepare('INSERT INTO vault VALUES (1, ?, 0, 0)').run(keys.checkValue);
  const { mac } = headWithoutTree(keys.audit, 0, GENESIS_MAC);
  database.prepare('INSERT INTO audit_head VALUES (1, 0, ?, ?, 0, 0)').run(GENESIS_MAC, mac);
  database.close();
  const service = await startTestService(t, [], dataDir);
  assert.equal((await service.admin.get('/api/v1/audit/verify')).body.data.valid, true);
  assert.deepEqual((await vaultKeysOf(dataDir)).dataKeyIds, keys.dataKeyIds);
});
