// Databases that are not what they were: each is a clear line and no start, or a start that says so; never a crash.
// SOURCE: security, P10; decisions, "The product". What a damaged log does to verification is held in test/spec and test/vault.

import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { StartError } from '../../src/daemon/files.ts';
import { StoreFailure } from '../../src/store/port.ts';
import { startTestService } from '../kit/service.ts';
import { assertNoStart, assertProgramRefuses, copyVault, outside, photograph, sessionOfGranted } from './vaults.ts';

const PAGE = 8192;

test('a database of a newer schema is refused by the program in one line, and not changed by a byte', async (t) => {
  const dataDir = copyVault(t);
  outside(dataDir, 'PRAGMA user_version = 999');
  await assertProgramRefuses(
    dataDir,
    /the database has schema 999, this Leasehold knows up to \d+: start the newer Leasehold/,
  );
});

test('a database of another program is refused, and not changed by a byte', async (t) => {
  const dataDir = copyVault(t);
  outside(dataDir, 'PRAGMA application_id = 7');
  await assertNoStart(t, dataDir, /is a database of another program/);
});

test('a file that is no database any more is one clear line of the program, and no crash', async (t) => {
  const dataDir = copyVault(t);
  const file = join(dataDir, 'leasehold.db');
  writeFileSync(file, Buffer.concat([Buffer.alloc(100, 'x'), readFileSync(file).subarray(100)]));
  await assertProgramRefuses(dataDir, /not a database/);
});

test('a lock that is no lock any more is one clear line', async (t) => {
  const dataDir = copyVault(t);
  writeFileSync(join(dataDir, 'lock'), 'x'.repeat(5000), { mode: 0o600 });
  await assertNoStart(t, dataDir, /not a database/);
});

/** How the start went, in a word; an end that is no clear line is none. */
async function outcomeOf(t: Parameters<typeof startTestService>[0], dataDir: string): Promise<'refused' | 'started'> {
  try {
    const { stop } = await startTestService(t, [], dataDir);
    // A read may find the damage, and stop the service in order or not at all.
    await stop().catch(() => undefined);
    return 'started';
  } catch (error) {
    assert.equal(error instanceof StartError || error instanceof StoreFailure, true, String(error));
    assert.doesNotMatch((error as Error).message, /\n/);
    return 'refused';
  }
}

test('whichever page is damaged, the start is refused in one line or goes on', async (t) => {
  const dataDir = copyVault(t);
  const [file, good] = [join(dataDir, 'leasehold.db'), join(dataDir, '..', 'good.db')];
  copyFileSync(file, good);
  const pages = Math.floor(statSync(good).size / PAGE);
  const outcomes = new Set<string>();
  for (let page = 0; page < pages; page++) {
    const bytes = readFileSync(good);
    bytes.fill(0xff, page * PAGE, (page + 1) * PAGE);
    writeFileSync(file, bytes);
    outcomes.add(await outcomeOf(t, dataDir));
  }
  assert.equal(outcomes.has('refused'), true);
  copyFileSync(good, file);
  assert.equal(await outcomeOf(t, dataDir), 'started');
});

test('a database that was cut short is refused in one line', async (t) => {
  const dataDir = copyVault(t);
  const file = join(dataDir, 'leasehold.db');
  const size = statSync(file).size;
  for (const left of [size - PAGE, Math.floor(size / 2), 3 * PAGE, PAGE + 1, PAGE, 200, 50]) {
    truncateSync(file, left);
    assert.equal(await outcomeOf(t, dataDir), 'refused', `${left} bytes`);
  }
});

const ALTERED: Readonly<Record<string, string>> = {
  'an agent’s key': "UPDATE agents SET public_key = 'no key'",
  'an agent’s name': "UPDATE agents SET name = '../../escaped' WHERE name = 'kept'",
  'an agent’s id': "UPDATE agents SET id = '../../escaped' WHERE name = 'kept'",
  'a policy’s patterns': "UPDATE policies SET resources = 'no JSON'",
  'a policy’s patterns, to a number': "UPDATE policies SET resources = '7'",
  'a policy’s actions': 'UPDATE policies SET actions = \'["fly"]\'',
  'a policy’s principal': "UPDATE policies SET principal = 'agent:*'",
  'a policy’s TTL': 'UPDATE policies SET max_ttl = -9223372036854775807',
  'a session’s agent': "UPDATE sessions SET agent_id = 'nobody'",
  'a credential’s path': "UPDATE credentials SET path = '../../escaped'",
  'the time of the last entry': "UPDATE audit_entries SET timestamp = 'no time'",
  'all times of the log': "UPDATE audit_entries SET timestamp = ''",
  'the ordinals of the log': 'UPDATE audit_entries SET seq = seq + 9007199254740000',
  'the head record’s ordinal': 'UPDATE audit_head SET seq = 9007199254740993',
  'the head record': 'DELETE FROM audit_head',
  'the check of the root key': "UPDATE vault SET key_check = ''",
  'a table that is missing': 'DROP TABLE sessions',
  'a view that is missing': 'DROP VIEW leases_now',
  'every row of every table':
    'DELETE FROM agents; DELETE FROM policies; DELETE FROM credentials; DELETE FROM audit_entries',
};

for (const [what, sql] of Object.entries(ALTERED)) {
  test(`altered outside: ${what}. The start is refused in one line or goes on, and no file is made elsewhere`, async (t) => {
    const dataDir = copyVault(t);
    outside(dataDir, sql);
    const around = Object.keys(photograph(join(dataDir, '..'))).filter((name) => !name.startsWith('./data'));
    await outcomeOf(t, dataDir);
    assert.deepEqual(
      Object.keys(photograph(join(dataDir, '..'))).filter((name) => !name.startsWith('./data')),
      around,
    );
  });
}

test('rows of agents and policies that were altered outside are not used, and the start says how many', async (t) => {
  const dataDir = copyVault(t);
  outside(
    dataDir,
    "UPDATE policies SET actions = '[\"retrieve\"]'; UPDATE agents SET description = 'x' WHERE name = 'kept'",
  );
  const { as, admin, warnings } = await startTestService(t, [], dataDir);
  assert.match(
    warnings.join(),
    /^2 rows of agents or policies in the database were altered outside Leasehold and are not used/,
  );
  assert.equal((await as(sessionOfGranted).get('/api/v1/credentials/a/b')).status, 403);
  assert.equal((await admin.get('/api/v1/agents/kept')).status, 404);
});

test('a write-ahead log that is no log is as none, and the vault is as it was at its last checkpoint', async (t) => {
  const dataDir = copyVault(t);
  const wal = join(dataDir, 'leasehold.db-wal');
  assert.equal(existsSync(wal), false);
  writeFileSync(wal, 'x'.repeat(10_000));
  const { admin } = await startTestService(t, [], dataDir);
  assert.equal((await admin.get('/api/v1/credentials/a/b')).body.data.value, 'kept');
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});
