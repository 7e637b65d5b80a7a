// The MACs of operators' rows, and the migration of rows from before passkeys. SOURCE: docs/formats.md, "Authenticated
// rows".

import assert from 'node:assert/strict';
import { createSecretKey } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import type { PasskeyId } from '../../src/core/passkey.ts';
import { rowMac } from '../../src/crypto/row-mac.ts';
import { AUTHENTICATED_ROWS } from '../../src/ledger/authenticated-rows.ts';
import { readMigrations } from '../../src/store/migrations.ts';
import { OPERATORS } from '../../src/store/schema.ts';
import { anOperator } from '../contract/rows.ts';

const key = createSecretKey(Buffer.alloc(32, 1));
const { withMac, isAuthentic } = AUTHENTICATED_ROWS.operator;
const former = anOperator(1);
const { id, name, description, roles, publicKey, addedAt } = former;
const mac = rowMac(key, 'operator', [id, name, description, roles, publicKey ?? '', addedAt, '']);
const passkey = {
  id: 'aWQ' as PasskeyId,
  publicKey: 'a2V5',
  counter: 3,
  transports: ['internal'],
  label: 'laptop',
  isSynced: true,
  addedAt: 5,
};
const identity = { issuer: 'https://id.example', subject: 's', email: null };

test('a row from before passkeys keeps its MAC through the migration', () => {
  const database = new DatabaseSync(':memory:');
  const migrations = readMigrations('sqlite');
  for (const { sql } of migrations.filter(({ number }) => number < 8)) database.exec(sql);
  database
    .prepare(
      'INSERT INTO operators (id, name, description, roles, public_key, added_at, mac) VALUES (?, ?, ?, ?, ?, ?, ?)',
    )
    .run(id, name, description, JSON.stringify(roles), publicKey, addedAt, mac);
  for (const { sql } of migrations.filter(({ number }) => number >= 8)) database.exec(sql);
  const row = database.prepare('SELECT * FROM operators').get() ?? {};
  database.close();
  assert.equal(isAuthentic(key, OPERATORS.decode(row as never)), true);
});

test('the MAC covers passkeys and the identity, also after they were stored', () => {
  const whole = withMac(key, { ...former, passkeys: [passkey], identity });
  const stored = OPERATORS.decode(
    Object.fromEntries(OPERATORS.columns.map((column, at) => [column.name, OPERATORS.encode(whole)[at]])) as never,
  );
  assert.equal(isAuthentic(key, stored), true);
  const altered = [
    { passkeys: null },
    { identity: null },
    { passkeys: null, identity: null },
    { passkeys: [{ ...passkey, counter: 2 }] },
    { passkeys: [{ ...passkey, publicKey: 'b3RoZXI' }] },
    { passkeys: [passkey, { ...passkey, id: 'aWRy' as PasskeyId }] },
    { identity: { ...identity, subject: 'another' } },
  ];
  for (const change of altered) assert.equal(isAuthentic(key, { ...stored, ...change }), false);
  assert.equal(isAuthentic(key, { ...former, mac, passkeys: [passkey] }), false);
});
