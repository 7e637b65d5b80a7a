// The MACs of authenticated rows, frozen in test/vectors/rows-v3.json.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdempotencyRecord } from '../../src/core/idempotency.ts';
import { isAuthentic as isRowAuthentic, withMac } from '../../src/ledger/authenticated-rows.ts';
import type { Agent } from '../../src/vault/agents/agent.ts';
import type { Credential } from '../../src/vault/credentials/credential.ts';
import type { Operator } from '../../src/vault/operators/operator.ts';
import type { Policy } from '../../src/vault/policies/policy.ts';
import type { Session } from '../../src/vault/sessions/session.ts';
import type { TargetBinding } from '../../src/vault/use/target.ts';
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

test('a row without a MAC, which only damage leaves, is not authentic', () => {
  for (const mac of [null, undefined, 7]) {
    assert.equal(isRowAuthentic(keys.row, 'policy', { name: 'p', mac } as never), false);
  }
});
