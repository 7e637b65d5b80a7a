// The ids of idempotency records and the MACs of requests, frozen in test/vectors/idempotency-v1.json.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { IdempotencyKey } from '../../src/core/idempotency.ts';
import type { AgentName, TokenHash } from '../../src/core/names.ts';
import { requestFingerprint } from '../../src/http/request-headers.ts';
import { toIdempotency } from '../../src/vault/header-digests.ts';
import { keysFrom, keysOf, readVectors } from './vectors.ts';

interface RequestVector {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly if_none_match: string | null;
  readonly mac: string;
}

const vectors = readVectors<{
  root_key: string;
  ids: readonly { readonly name: string; readonly key: string; readonly id: string }[];
  requests: readonly RequestVector[];
}>('idempotency-v1.json');
const keys = keysOf(vectors.root_key);

const presentedBy = (name: string) =>
  name === 'admin'
    ? { kind: 'admin' as const }
    : { kind: 'session' as const, tokenHash: 'any' as TokenHash, agentName: name as AgentName };

const idOf = (name: string, key: string, from = keys): string =>
  toIdempotency({ keys: from }, presentedBy(name), key as IdempotencyKey, []).id;

function macOf({ if_none_match, ...asked }: Omit<RequestVector, 'mac' | 'name'>, from = keys): string {
  const texts = requestFingerprint(asked, asked, if_none_match ?? undefined);
  return toIdempotency({ keys: from }, presentedBy('admin'), 'k' as IdempotencyKey, texts).requestMac;
}

test('the frozen callers and keys have their frozen ids, which all differ', () => {
  for (const { name, key, id } of vectors.ids) {
    assert.equal(idOf(name, key), id);
    assert.notEqual(idOf(name, key, keysFrom(7)), id);
  }
  assert.equal(new Set(vectors.ids.map(({ id }) => id)).size, vectors.ids.length);
});

test('the frozen requests have their frozen MACs, which all differ', () => {
  for (const vector of vectors.requests) {
    assert.equal(macOf(vector), vector.mac, vector.name);
    assert.notEqual(macOf(vector, keysFrom(7)), vector.mac);
  }
  assert.equal(new Set(vectors.requests.map(({ mac }) => mac)).size, vectors.requests.length);
});

test('the order of fields does not change the MAC of a request; everything else does', () => {
  const asked = {
    method: 'POST',
    path: '/a',
    params: { a: '1', b: '2' },
    query: { a: '1', b: '2' },
    body: { a: '1', b: ['x', 'y'], c: 1 },
    if_none_match: null,
  };
  const turned = (fields: object) => Object.fromEntries(Object.entries(fields).reverse());
  const sameAs = macOf({
    ...asked,
    params: turned(asked.params),
    query: turned(asked.query),
    body: turned(asked.body),
  });
  assert.equal(sameAs, macOf(asked));
  const others = [
    { method: 'PUT' },
    { path: '/b' },
    { params: { a: '2', b: '1' } },
    { query: { ...asked.query, c: '' } },
    { params: asked.query, query: {} },
    { body: { ...asked.body, c: '1' } },
    { body: { ...asked.body, b: ['y', 'x'] } },
    { body: { ...asked.body, b: 'x,y' } },
    { body: { a: '1', b: ['x', 'y'] } },
    { body: {} },
    { if_none_match: '*' },
  ].map((fields) => macOf({ ...asked, ...fields }));
  assert.equal(new Set([macOf(asked), ...others]).size, others.length + 1);
});
