// The rules of a backup's columns accept all stored values, and reject everything else.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMigrations } from '../../src/store/migrations.ts';
import { NEWEST_SCHEMA, TABLES } from '../../src/store/schema.ts';
import type { ColumnType } from '../../src/store/table.ts';

const ruleOf = (table: string, column: string) => {
  const columns = TABLES.find(({ name }) => name === table)?.columns;
  return columns?.find(({ name }) => name === column)?.rule ?? assert.fail(`${table}.${column}`);
};

test('a backup names the number of the last migration of either store', () => {
  for (const kind of ['sqlite', 'postgres'] as const) assert.equal(readMigrations(kind).length, NEWEST_SCHEMA, kind);
});

/** What no column of the type may contain. */
const WRONG: Readonly<Record<ColumnType, readonly unknown[]>> = {
  text: [1, true, {}, [], undefined, '\u0000', '\ud800'],
  number: ['1', 0.5, -1, Number.NaN, 2 ** 53, true, {}, undefined],
  bytes: [1, {}, '', 'A', 'AAA=A', 'AB==', '=', 'A'.repeat(20_000_000)],
  list: [1, '', '{', '{}', '[1]', '[{}]', '[null]', `[${'['.repeat(10_000)}`],
  json: [1, '', '{', '"x"', '1', '[1]', '{"__proto__":{}}', `[${'['.repeat(10_000)}`],
};
/** Any JSON: the reply to a request, which has a MAC. */
const ANY_JSON = new Set(['idempotency_records.reply']);

test('no column accepts another type, a malformed text, or a number that is not a safe integer', () => {
  for (const { name, columns } of TABLES) {
    for (const { name: column, type } of columns) {
      if (ANY_JSON.has(`${name}.${column}`)) continue;
      for (const value of WRONG[type]) {
        const broken = ruleOf(name, column)(value);
        const shown = `${name}.${column}: ${JSON.stringify(value)?.slice(0, 40)}`;
        assert.equal(typeof broken, 'string', shown);
        assert.ok((broken ?? '').length < 200, shown);
      }
    }
  }
});

const passkey = {
  id: 'AQ',
  publicKey: 'pQEC',
  counter: 0,
  transports: ['usb'],
  label: 'key',
  isSynced: false,
  addedAt: 1,
};
const identity = { issuer: 'https://id.example.org', subject: null, email: 'a@example.org' };
const target = {
  origin: 'https://*.example.org',
  paths: ['/v1/*'],
  methods: ['GET'],
  allowNetworks: [],
  caPem: null,
};
const terms = {
  each: 'endpoint',
  uses: null,
  seconds: 60,
  isForSession: false,
  quorum: 1,
  timeoutSeconds: 300,
  policyNames: ['asks'],
};
const approval = { for: 'use', each: 'request', scope: 'once', quorum: 1, timeout: 300 };

/** Columns of JSON: a value that is stored, and changes of it that are refused. */
const JSON_COLUMNS: readonly (readonly [
  table: string,
  column: string,
  stored: unknown,
  refused: readonly unknown[],
])[] = [
  ['operators', 'passkeys', [passkey], [[], [{ ...passkey, label: '\u001b[2J' }], [{ ...passkey, more: 1 }], 'x']],
  [
    'operators',
    'identity',
    identity,
    [{ ...identity, issuer: 'file:///etc' }, { ...identity, email: 'x' }, [identity]],
  ],
  ['operators', 'roles', ['viewer'], [[], ['root'], ['viewer', 1], {}]],
  ['policies', 'resources', ['prod/*', '*'], [[], ['../x'], ['a*'], Array.from({ length: 257 }, () => 'a')]],
  ['policies', 'approval', approval, [{ ...approval, scope: '0 uses' }, { ...approval, quorum: 11 }, {}]],
  [
    'policies',
    'limits',
    { usesPerHour: 1, bytesPerHour: null, concurrent: null },
    [{ usesPerHour: 1 }, { usesPerHour: 0 }],
  ],
  [
    'credential_targets',
    'allowed_targets',
    // A previous version accepted networks that no request reaches.
    [target, { ...target, allowNetworks: ['169.254.169.254/32'] }],
    [
      [],
      [{ ...target, origin: 'http://example.org' }],
      [{ ...target, origin: 'https://a b' }],
      [{ ...target, origin: 'https://example.org:443' }],
      [{ ...target, paths: ['/../x'] }],
      [{ ...target, origin: 'https://example.org:0' }],
      [{ ...target, caPem: '-----BEGIN CERTIFICATE-----\u0000' }],
      [{ ...target, caPem: '-----BEGIN CERTIFICATE-----\ud800' }],
    ],
  ],
  [
    'credential_targets',
    'placement',
    { kind: 'basic', username: null },
    [{ kind: 'header' }, { kind: 'header', name: 'host' }, { kind: 'x' }, { kind: { toString: 1, valueOf: 1 } }],
  ],
  [
    'approvals',
    'terms',
    terms,
    [
      { ...terms, seconds: 0 },
      { ...terms, policyNames: ['..'] },
      { ...terms, quorum: 0 },
    ],
  ],
  ['approvals', 'approvers', [{ operator: 'operator:a', operatorId: 'admin', at: 1 }], [[{ operator: '../a' }], {}]],
  [
    'key_slots',
    'parameters',
    { salt: 'AA==', passes: 3 },
    [{ '../x': 1 }, { salt: {} }, { salt: '\u0000' }, { __proto__x: 1 }, []],
  ],
];

test('a column of JSON accepts what is stored, and refuses other members and values', () => {
  for (const [table, column, stored, refused] of JSON_COLUMNS) {
    const rule = ruleOf(table, column);
    assert.equal(rule(JSON.stringify(stored)), null, `${table}.${column}`);
    for (const value of refused) {
      assert.equal(typeof rule(JSON.stringify(value)), 'string', `${table}.${column}: ${JSON.stringify(value)}`);
    }
  }
});

test('a time of the log is one that exists, and a count can be added to', () => {
  const timestamp = ruleOf('audit_entries', 'timestamp');
  assert.equal(timestamp('2026-02-28T23:59:59.999Z'), null);
  for (const wrong of ['2026-02-30T00:00:00.000Z', '2026-13-45T25:61:61.000Z', '9999-99-99T99:99:99.999Z'])
    assert.equal(typeof timestamp(wrong), 'string', wrong);
  assert.equal(typeof ruleOf('exposures', 'times')(Number.MAX_SAFE_INTEGER), 'string');
});
