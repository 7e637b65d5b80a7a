// Rows that were altered outside: no start crashes, or creates a file elsewhere. SOURCE: SECURITY.md, P10.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { executeSql } from '../kit/direct-db.ts';
import { copyVault, outcomeOfStart, photograph } from './vaults.ts';

const ALTERED: Readonly<Record<string, string>> = {
  'an agent’s key': "UPDATE agents SET public_key = 'no key'",
  'an agent’s name': "UPDATE agents SET name = '../../escaped' WHERE name = 'kept'",
  'a policy’s patterns': "UPDATE policies SET resources = 'no JSON'",
  'a session’s agent': "UPDATE sessions SET agent_id = 'nobody'",
  'a credential’s path': "UPDATE credentials SET path = '../../escaped'",
  'the time of the last entry': "UPDATE audit_entries SET timestamp = 'no time'",
  'the ordinals of the log': 'UPDATE audit_entries SET seq = seq + 9007199254740000',
  'the head record’s sequence number': 'UPDATE audit_head SET seq = 9007199254740993',
  'the head record': 'DELETE FROM audit_head',
  'the check of the root key': "UPDATE vault SET key_check = ''",
  'a table that is missing': 'DROP TABLE sessions',
  'the latest time, beyond the year 9999': 'UPDATE vault SET high_water_time = 9000000000000000',
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
