// Altered databases: the service refuses to start with one line, or starts and warns; it never crashes.
// SOURCE: SECURITY.md, P10; docs/decisions.md, "The process". test/spec and test/vault verify damaged logs,
// and test/sqlite tests damaged SQLite files.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { executeSql, lockDatabase } from '../kit/direct-db.ts';
import { runProgram } from '../kit/process.ts';
import { startTestService } from '../kit/service.ts';
import { assertNoStart, copyVault, outcomeOfStart, photograph, sessionOfGranted } from './vaults.ts';

test('a damaged lock file gives one line', async (t) => {
  const dataDir = await copyVault(t);
  writeFileSync(join(dataDir, 'lock'), 'x'.repeat(5000), { mode: 0o600 });
  await assertNoStart(t, dataDir, /not a database/);
});

const ALTERED: Readonly<Record<string, string>> = {
  'an agent’s key': "UPDATE agents SET public_key = 'no key'",
  'an agent’s name': "UPDATE agents SET name = '../../escaped' WHERE name = 'kept'",
  'an agent’s id': "UPDATE agents SET id = '../../escaped' WHERE name = 'kept'",
  'a policy’s patterns': "UPDATE policies SET resources = 'no JSON'",
  'a policy’s patterns, to a number': "UPDATE policies SET resources = '7'",
  'a policy’s actions': 'UPDATE policies SET actions = \'["fly"]\'',
  'a policy’s principal': "UPDATE policies SET principal = 'agent:*'",
  'a policy’s TTL': 'UPDATE policies SET max_ttl_seconds = -9223372036854775807',
  'a session’s agent': "UPDATE sessions SET agent_id = 'nobody'",
  'a credential’s path': "UPDATE credentials SET path = '../../escaped'",
  'the time of the last entry': "UPDATE audit_entries SET timestamp = 'no time'",
  'all times of the log': "UPDATE audit_entries SET timestamp = ''",
  'the ordinals of the log': 'UPDATE audit_entries SET seq = seq + 9007199254740000',
  'the head record’s sequence number': 'UPDATE audit_head SET seq = 9007199254740993',
  'the head record': 'DELETE FROM audit_head',
  'the check of the root key': "UPDATE vault SET key_check = ''",
  'a table that is missing': 'DROP TABLE sessions',
  'a view that is missing': 'DROP VIEW effective_leases',
  'every row of every table':
    'DELETE FROM agents; DELETE FROM policies; DELETE FROM credentials; DELETE FROM audit_entries',
};

for (const [what, sql] of Object.entries(ALTERED)) {
  test(`altered outside: ${what}. The start fails with one line or succeeds, and creates no file elsewhere`, async (t) => {
    const dataDir = await copyVault(t);
    await executeSql(dataDir, sql);
    const around = Object.keys(photograph(join(dataDir, '..'))).filter((name) => !name.startsWith('./data'));
    await outcomeOfStart(t, dataDir);
    assert.deepEqual(
      Object.keys(photograph(join(dataDir, '..'))).filter((name) => !name.startsWith('./data')),
      around,
    );
  });
}

test('altered rows of agents and policies are not used, and the start reports their number', async (t) => {
  const dataDir = await copyVault(t);
  await executeSql(
    dataDir,
    "UPDATE policies SET actions = '[\"retrieve\"]'; UPDATE agents SET description = 'x' WHERE name = 'kept'",
  );
  const { as, admin, warnings } = await startTestService(t, [], dataDir);
  assert.match(
    warnings.join(),
    /^2 rows of agents, operators or policies in the database were altered outside Leasehold and are not used/,
  );
  assert.equal((await as(sessionOfGranted).get('/api/v1/credentials/a/b')).status, 403);
  assert.equal((await admin.get('/api/v1/agents/kept')).status, 404);
});

test('a start that cannot be recorded fails with the store’s message in one line, and the next one succeeds', async (t) => {
  const dataDir = await copyVault(t);
  const lock = await lockDatabase(dataDir);
  const { code, output } = await runProgram([
    '--data-dir',
    dataDir,
    '--listen',
    '127.0.0.1:0',
    '--log-level',
    'silent',
  ]);
  await lock.release();
  assert.match(output, /^leasehold: [^\n]*(?:is in use by another program|lock timeout)[^\n]*\n$/);
  assert.equal(code, 1);
  const { admin } = await startTestService(t, [], dataDir);
  assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});

const OUT_OF_RANGE: Readonly<Record<string, string>> = {
  'the latest time, beyond the year 9999': 'UPDATE vault SET high_water_time = 9000000000000000',
  'the latest time, below zero': 'UPDATE vault SET high_water_time = -9000000000000000',
  'the last entry’s number, the largest that there is':
    'UPDATE audit_entries SET seq = 9007199254740991 WHERE seq = (SELECT max(seq) FROM audit_entries)',
};

for (const [what, sql] of Object.entries(OUT_OF_RANGE)) {
  test(`the program fails with one line, without a stack or log lines: ${what}`, async (t) => {
    const dataDir = await copyVault(t);
    await executeSql(dataDir, sql);
    const { code, output } = await runProgram(['--data-dir', dataDir, '--listen', '127.0.0.1:0']);
    assert.match(output, /^leasehold: [^\n]{20,}\n$/);
    assert.equal(code, 1);
  });
}
