// `leasehold audit key` prints the key of the entry MACs, and changes nothing.
// SOURCE: docs/decisions.md, "The audit log".

import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { databaseUrlOf } from '../kit/stores.ts';
import { copyVault, photograph, photographRunning } from './vaults.ts';

const auditKey = (t: TestContext, ...flags: string[]) => newHome(t).leasehold(['audit', 'key', ...flags]);

/** The flags that name the vault of a data directory. */
async function vaultFlags(dataDir: string): Promise<string[]> {
  const url = await databaseUrlOf(dataDir);
  return ['--data-dir', dataDir, ...(url === null ? [] : ['--database', url])];
}

test('audit key prints the key of the entry MACs, also while the server runs, and changes no file', async (t) => {
  const dataDir = await copyVault(t);
  const service = await startTestService(t, [], dataDir);
  const before = photographRunning(dataDir);
  const { code, stdout: output } = await auditKey(t, ...(await vaultFlags(dataDir)));
  assert.equal(code, 0);
  assert.match(output, /^[A-Za-z0-9+/]{43}=\n$/);
  assert.deepEqual(photographRunning(dataDir), before);

  assert.notEqual(output.trim(), readFileSync(join(dataDir, 'root.key'), 'utf8').trim());
  const answer = await service.admin.get('/api/v1/audit/export');
  const [seq, hmac, mac, epoch, tree, control] = answer.headers.get('leasehold-audit-head')?.split(' ') ?? [];
  const fields = [Number(seq), hmac, Number(epoch), tree, control === '-' ? null : control];
  const signed = JSON.stringify(['leasehold-head-v2', ...fields]);
  assert.equal(createHmac('sha256', Buffer.from(output, 'base64')).update(signed).digest('base64'), mac);
});

test('audit key creates neither a key nor a directory: one line and 1', async (t) => {
  const [dataDir, directory] = [await copyVault(t), temporaryDirectory(t)];
  const keyFile = join(directory, 'key');
  renameSync(join(dataDir, 'root.key'), keyFile);
  const before = photograph(dataDir);
  const vault = await vaultFlags(dataDir);
  const [missing, nowhere, elsewhere] = await Promise.all([
    auditKey(t, ...vault),
    auditKey(t, '--data-dir', join(directory, 'none')),
    auditKey(t, ...vault, '--root-key-file', keyFile),
  ]);
  assert.match(missing.stderr, /^leasehold: The root key is missing: [^\n]+\n$/);
  assert.match(nowhere.stderr, /^leasehold: [^\n]*none contains no vault[^\n]*\n$/);
  assert.deepEqual([missing.code, nowhere.code], [1, 1]);
  assert.match(elsewhere.stdout, /^[A-Za-z0-9+/]{43}=\n$/);
  assert.equal(elsewhere.code, 0);
  assert.equal(existsSync(join(directory, 'none')), false);
  assert.deepEqual(photograph(dataDir), before);

  writeFileSync(keyFile, 'no key');
  const malformed = await auditKey(t, ...vault, '--root-key-file', keyFile);
  assert.match(malformed.stderr, /^leasehold: [^\n]* is not a root key[^\n]*\n$/);
  rmSync(keyFile);
});
