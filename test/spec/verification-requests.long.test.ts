// Verifications of a long audit log by HTTP: they end with their client, and a stop waits for the others.
// test/vault/verification.long.test.ts shows their progress, and which callers share one.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { dataOf, TIMESTAMP } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { openStore } from '../kit/stores.ts';
import { vaultKeysOf } from '../kit/vault-keys.ts';
import { lengthenLog } from '../vault/verification-log.ts';

const VERIFY = '/api/v1/audit/verify';
const PROGRESS = '/api/v1/audit/verify/progress';
const INTACT = 'valid entries first_entry last_entry';

const LONG = 60_000;

/** A vault with a long log, which one service after the other opens. */
const longLog = makeLongLog({ after });

async function makeLongLog(scope: Scope): Promise<string> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  await (await startTestService(scope, [], dataDir)).stop();
  const store = await openStore(dataDir);
  await lengthenLog(store, await vaultKeysOf(dataDir), LONG);
  await store.close();
  return dataDir;
}

test('the progress of a verification is shown while it runs', async (t) => {
  const { admin } = await startTestService(t, [], await longLog);
  const look = async () => dataOf(await admin.get(PROGRESS), 200, 'running entries_checked entries_total started_at');
  const verifying = admin.get(VERIFY);
  let progress = await look();
  while (!progress.running) progress = await look();
  assert.equal(progress.entries_checked <= progress.entries_total && progress.entries_total >= LONG, true);
  assert.match(progress.started_at, TIMESTAMP);
  assert.equal(dataOf(await verifying, 200, INTACT).valid, true);
});

test('a verification is cancelled when its client disconnects, and is not logged as an error', async (t) => {
  const { address, adminToken, output, end } = await startProcess(t, await longLog, ['--log-level', 'info']);
  const admin = createClient(address, adminToken);
  const look = async () => (await admin.get(PROGRESS)).body.data;
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${adminToken}` };
  const asked = fetch(address + VERIFY, { headers, signal: leaving.signal });
  while (!(await look()).running);
  leaving.abort();
  await assert.rejects(asked, { name: 'AbortError' });
  let most = 0;
  for (let progress = await look(); progress.running; progress = await look()) {
    most = Math.max(most, progress.entries_checked);
  }
  assert.equal(most < LONG / 2, true, `it had checked ${most}`);
  assert.equal((await admin.get(VERIFY)).body.data.valid, true);
  assert.equal(await end('SIGTERM'), 0);
  assert.doesNotMatch(output(), /mistake|"level":[56]0/);
});

test('a stop completes a running verification', async (t) => {
  const dataDir = await longLog;
  // The threads of a verification have the lowest priority: on a busy machine they take longer than the usual 10 s.
  const service = await startTestService(t, [], dataDir, undefined, { stopMs: 120_000 });
  const verifying = service.admin.get(VERIFY);
  while (!(await service.admin.get(PROGRESS)).body.data.running);
  await service.stop();
  assert.equal(dataOf(await verifying, 200, INTACT).valid, true);
});

test('a stop cancels a verification whose client disconnected, and the exit code is 0', async (t) => {
  const service = await startProcess(t, await longLog);
  const admin = createClient(service.address, service.adminToken);
  const leaving = new AbortController();
  const headers = { authorization: `Bearer ${service.adminToken}` };
  const asked = fetch(service.address + VERIFY, { headers, signal: leaving.signal });
  asked.catch(() => undefined);
  while (!(await admin.get(PROGRESS)).body.data.running);
  const ended = service.end('SIGTERM');
  leaving.abort();
  assert.equal(await ended, 0);
  await assert.rejects(asked);
  assert.doesNotMatch(service.output(), /mistake/);
});
