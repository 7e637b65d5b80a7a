// The MACs of authenticated rows, frozen in test/vectors/rows-v3.json.

import assert from 'node:assert/strict';
import { createHmac, createSecretKey } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import type { IdempotencyRecord } from '../../src/core/idempotency.ts';
import { SetDigest } from '../../src/crypto/row-mac.ts';
import { isAuthentic as isRowAuthentic, withMac } from '../../src/ledger/authenticated-rows.ts';
import type { Agent } from '../../src/vault/agents/agent.ts';
import type { Credential } from '../../src/vault/credentials/credential.ts';
import type { Operator } from '../../src/vault/operators/operator.ts';
import type { Policy } from '../../src/vault/policies/policy.ts';
import type { Session } from '../../src/vault/sessions/session.ts';
import type { TargetBinding } from '../../src/vault/use/target.ts';
import { runs } from '../kit/property.ts';
import { keysFrom, keysOf, readVectors } from './vectors.ts';

type RowVector = { readonly mac: string } & (
  | { readonly kind: 'agent'; readonly row: Agent }
  | { readonly kind: 'operator'; readonly row: Operator }
  | { readonly kind: 'policy'; readonly row: Policy }
  | { readonly kind: 'session'; readonly row: Session }
  | { readonly kind: 'credential'; readonly row: Credential }
  | { readonly kind: 'targets'; readonly row: TargetBinding }
  | { readonly kind: 'reply'; readonly row: IdempotencyRecord }
);

const vectors = readVectors<{
  root_key: string;
  rows: RowVector[];
  tampered: (RowVector & { readonly name: string })[];
}>('rows-v3.json');
const keys = keysOf(vectors.root_key);

const KINDS = ['agent', 'operator', 'policy', 'session', 'credential', 'targets', 'reply'] as const;

function sign({ kind, row }: RowVector, key = keys.row): string {
  return withMac(key, kind, row as never).mac;
}

function isAuthentic({ kind, row, mac }: RowVector, key = keys.row): boolean {
  return isRowAuthentic(key, kind, { ...row, mac } as never);
}

test('the frozen rows have their frozen MACs', () => {
  assert.deepEqual(new Set(vectors.rows.map(({ kind }) => kind)), new Set(KINDS));
  for (const vector of vectors.rows) {
    assert.equal(sign(vector), vector.mac);
    assert.equal(isAuthentic(vector), true);
  }
});

for (const vector of vectors.tampered) {
  test(`a row is not authentic: ${vector.kind}, ${vector.name}`, () => assert.equal(isAuthentic(vector), false));
}

test('a row is authentic with its own key only', () => {
  for (const vector of vectors.rows) {
    for (const key of [keysFrom(7).row, keys.audit, keys.currentDataKey, keys.challenge]) {
      assert.equal(isAuthentic(vector, key), false);
    }
  }
});

test('the MAC covers each field of each kind of row', () => {
  for (const vector of vectors.rows) {
    for (const [field, value] of Object.entries(vector.row)) {
      const altered = typeof value === 'number' ? value + 1 : Array.isArray(value) ? [...value, ''] : `${value} `;
      const tampered = { ...vector, row: { ...vector.row, [field]: altered } } as RowVector;
      assert.equal(isAuthentic(tampered), false, `${vector.kind}.${field}`);
    }
  }
});

test('a row without a MAC, which only damage causes, is not authentic', () => {
  for (const mac of [null, undefined, 7]) {
    assert.equal(isRowAuthentic(keys.row, 'policy', { name: 'p', mac } as never), false);
  }
});

// The digest of agents, operators and policies. SOURCE: docs/formats.md, "State in the log".

const key = createSecretKey(Buffer.alloc(32, 7));
const mac = (...fields: readonly string[]): Buffer =>
  createHmac('sha256', Buffer.alloc(32, 7)).update(JSON.stringify(fields)).digest();

/** The digest as docs/formats.md defines it. */
function expected(members: ReadonlyMap<string, string>): string {
  const sum = Buffer.alloc(32);
  for (const [name, value] of members) {
    for (const [at, byte] of mac('leasehold-control-member-v1', name, value).entries()) sum[at] = (sum[at] ?? 0) ^ byte;
  }
  return mac('leasehold-control-set-v1', String(members.size), sum.toString('base64')).toString('base64');
}

test('the digest, updated step by step, equals that of the set, in any order, and different sets differ', () => {
  const names = fc.constantFrom('agent:a', 'agent:b', 'policy:a', 'policy:b', 'policy:c');
  const steps = fc.array(fc.tuple(names, fc.option(fc.constantFrom('1', '2', '3'))), { maxLength: 30 });
  fc.assert(
    fc.property(steps, (list) => {
      const members = new Map<string, string>();
      const digest = new SetDigest(key);
      const seen = new Map<string, string>();
      for (const [name, value] of list) {
        if (value === null) digest.delete(name);
        else digest.put(name, value);
        if (value === null) members.delete(name);
        else members.set(name, value);
        assert.equal(digest.toString(), expected(members));
        seen.set(JSON.stringify([...members].sort()), digest.toString());
      }
      assert.equal(new SetDigest(key, [...members].reverse()).toString(), digest.toString());
      assert.equal(new Set(seen.values()).size, seen.size);
    }),
    runs(300),
  );
});
