// Acknowledged changes exist at the next start, or nothing is served that depends on them, whatever happened to the
// files of the database while no service had them open. One damaged bit of the write-ahead log makes SQLite drop
// everything after it.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startProcess } from '../kit/process.ts';
import { tryRolledBack } from '../kit/rolled-back.ts';
import { startTestService } from '../kit/service.ts';

const LOSS = /^The database has lost entries of the log: this node has seen entry \d+, .*--accept-rollback\.$/;
const MISSING = /rollback\.marker is missing, so a loss of log entries cannot be detected.*--accept-rollback\.$/;
const DAMAGED = /rollback\.marker is damaged or belongs to another vault.*--accept-rollback\.$/;

/** A vault whose service was killed after it had deregistered an agent whose session was open. */
async function killedVault(t: TestContext): Promise<{ dataDir: string; session: string }> {
  const dataDir = join(temporaryDirectory(t), 'data');
  await (await startTestService(t, [], dataDir)).stop();
  const service = await startProcess(t, dataDir);
  const admin = createClient(service.address, service.adminToken);
  assert.equal((await admin.post('/api/v1/agents', { name: 'ci' })).status, 201);
  const session = await logIn(service.address, 'ci', readAgentKey(dataDir, 'ci'));
  assert.equal((await admin.delete('/api/v1/agents/ci')).status, 204);
  await service.end('SIGKILL');
  // On a busy machine the service may have been idle before it was killed, or between two of the changes.
  return hasChangesAlone(t, dataDir) ? killedVault(t) : { dataDir, session };
}

/** Whether the database without its write-ahead log has any of the changes. */
function hasChangesAlone(t: TestContext, dataDir: string): boolean {
  const alone = join(temporaryDirectory(t), 'alone.db');
  copyFileSync(join(dataDir, 'leasehold.db'), alone);
  const database = new DatabaseSync(alone);
  const found = database.prepare("SELECT 1 FROM audit_entries WHERE event_type = 'agent.register'").get();
  database.close();
  return found !== undefined;
}

/**
 * The offset of the last valid frame. SOURCE: sqlite.org/fileformat2.html#walformat: frames with the header's salts.
 */
function lastFrame(wal: Buffer): number {
  const frameBytes = 24 + wal.readUInt32BE(8);
  let at = 32;
  while (
    at + 2 * frameBytes <= wal.length &&
    wal.compare(wal, 16, 24, at + frameBytes + 8, at + frameBytes + 16) === 0
  ) {
    at += frameBytes;
  }
  return at;
}

const DAMAGES: Readonly<Record<string, (dataDir: string) => void>> = {
  'a bit near the end of the write-ahead log is flipped': (dataDir) => {
    const wal = join(dataDir, 'leasehold.db-wal');
    const bytes = readFileSync(wal);
    const at = lastFrame(bytes) + 100;
    bytes[at] = (bytes[at] ?? 0) ^ 1;
    writeFileSync(wal, bytes);
  },
  'the write-ahead log is cut short': (dataDir) => {
    const wal = join(dataDir, 'leasehold.db-wal');
    const bytes = readFileSync(wal);
    writeFileSync(wal, bytes.subarray(0, lastFrame(bytes) + 100));
  },
  'the write-ahead log is removed': (dataDir) => rmSync(join(dataDir, 'leasehold.db-wal')),
};

for (const [damage, apply] of Object.entries(DAMAGES)) {
  test(`after a kill nothing is served and nothing changes if ${damage}`, async (t) => {
    const { dataDir, session } = await killedVault(t);
    apply(dataDir);
    const files = damage.includes('removed') ? ['leasehold.db'] : ['leasehold.db', 'leasehold.db-wal'];
    const bytes = () => files.map((name) => readFileSync(join(dataDir, name)).toString('base64'));
    const before = bytes();
    await tryRolledBack(t, dataDir, LOSS);
    assert.deepEqual(bytes(), before);
    const otherKey = join(temporaryDirectory(t), 'other.key');
    writeFileSync(otherKey, Buffer.alloc(32, 1).toString('base64'), { mode: 0o600 });
    for (const flags of [[], ['--accept-rollback']]) {
      const starting = startTestService(t, ['--root-key-file', otherKey, ...flags], dataDir);
      await assert.rejects(starting, { message: /is not the root key of this vault\. Nothing was changed/ });
      assert.deepEqual(bytes(), before);
    }
    const accepted = await startTestService(t, ['--accept-rollback'], dataDir);
    assert.match(accepted.warnings.join('\n'), /lost entries of the log.*The operator accepts the loss\./);
    const { data } = (await accepted.admin.get('/api/v1/audit?event_type=service.start')).body;
    assert.match(data[0].reason, /has lost entries of the log/);
    // The accepted state: the agent exists again, unless its registration was lost too.
    const { status } = await accepted.as(session).get('/api/v1/credentials');
    assert.equal(status, damage.includes('removed') ? 401 : 200);
    await accepted.stop();
    assert.deepEqual((await startTestService(t, [], dataDir)).warnings, []);
  });
}

test('a kill alone loses nothing and needs no flag', async (t) => {
  const { dataDir, session } = await killedVault(t);
  const service = await startTestService(t, [], dataDir);
  assert.deepEqual(service.warnings, []);
  assert.equal((await service.as(session).get('/api/v1/credentials')).status, 401);
});

async function stoppedVault(t: TestContext): Promise<string> {
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'a/b', value: 'kept' });
  await service.stop();
  return service.dataDir;
}

test('an older copy of the whole database is not served', async (t) => {
  const dataDir = await stoppedVault(t);
  const [file, copy] = [join(dataDir, 'leasehold.db'), join(dataDir, '..', 'copy.db')];
  copyFileSync(file, copy);
  const service = await startTestService(t, [], dataDir);
  await service.admin.delete('/api/v1/credentials/a/b');
  await service.stop();
  copyFileSync(copy, file);
  await tryRolledBack(t, dataDir, LOSS);
});

test('a vault without its rollback marker is not served, and starts once that is accepted', async (t) => {
  const dataDir = await stoppedVault(t);
  const restored = join(temporaryDirectory(t), 'restored');
  mkdirSync(restored, { mode: 0o700 });
  for (const name of ['leasehold.db', 'root.key']) copyFileSync(join(dataDir, name), join(restored, name));
  await tryRolledBack(t, restored, MISSING);
  const accepted = await startTestService(t, ['--accept-rollback'], restored);
  assert.equal((await accepted.admin.get('/api/v1/credentials/a/b')).body.data.value, 'kept');
  await accepted.stop();
  assert.deepEqual((await startTestService(t, [], restored)).warnings, []);
});

const SLOT = 4096;

test('if one slot of the rollback marker is torn the other one decides, and the start reports it', async (t) => {
  const dataDir = await stoppedVault(t);
  const marker = join(dataDir, 'rollback.marker');
  const good = readFileSync(marker);
  const isWritten = (slot: number): boolean => good.toString('latin1', slot * SLOT, (slot + 1) * SLOT).trim() !== '';
  assert.equal([0, 1].every(isWritten), true, 'the test needs both slots');
  for (const slot of [0, 1]) {
    const torn = Buffer.from(good);
    torn.fill('0', slot * SLOT + 20, slot * SLOT + 30);
    writeFileSync(marker, torn);
    const service = await startTestService(t, [], dataDir);
    assert.match(service.warnings.join('\n'), /^A slot of .*rollback\.marker is damaged/);
    await service.stop();
  }
});

test('with a rollback marker that is damaged, or forged without the key of the vault, nothing is served', async (t) => {
  const dataDir = await stoppedVault(t);
  const marker = join(dataDir, 'rollback.marker');
  const good = readFileSync(marker, 'latin1');
  const forged = good.replaceAll(/"seq":\d+/g, '"seq":0').padEnd(2 * SLOT);
  for (const text of ['', 'x', good.slice(0, SLOT), forged, `${good}\n`, '0'.repeat(2 * SLOT)]) {
    writeFileSync(marker, text);
    await tryRolledBack(t, dataDir, DAMAGED);
  }
  const other = await stoppedVault(t);
  copyFileSync(join(other, 'rollback.marker'), marker);
  await tryRolledBack(t, dataDir, DAMAGED);
  writeFileSync(marker, good);
  assert.deepEqual((await startTestService(t, [], dataDir)).warnings, []);
});

/** A vault that is in its write-ahead log alone: its service was killed before anything was copied. */
async function vaultInWriteAheadLog(t: TestContext): Promise<string> {
  for (;;) {
    const dataDir = join(temporaryDirectory(t), 'data');
    const service = await startProcess(t, dataDir);
    await service.end('SIGKILL');
    const alone = join(temporaryDirectory(t), 'alone.db');
    copyFileSync(join(dataDir, 'leasehold.db'), alone);
    const database = new DatabaseSync(alone);
    const rows = database.prepare('SELECT 1 FROM vault').all();
    database.close();
    if (rows.length === 0) return dataDir;
  }
}

test('a write-ahead log that holds the whole vault and is damaged is left as it is', async (t) => {
  const dataDir = await vaultInWriteAheadLog(t);
  const wal = join(dataDir, 'leasehold.db-wal');
  const bytes = readFileSync(wal);
  bytes[100] = (bytes[100] ?? 0) ^ 1;
  writeFileSync(wal, bytes);
  await assert.rejects(startTestService(t, [], dataDir), { message: /cannot be read.*Nothing was changed/ });
  assert.deepEqual(readFileSync(wal), bytes);
});
