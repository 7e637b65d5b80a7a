// Challenges without storage, frozen in test/vectors/challenges-v1.json: an id contains its time and a MAC of the
// server. Tokens of use leases.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import fc from 'fast-check';
import * as grammar from '../../src/core/grammars.ts';
import type { ChallengeId } from '../../src/core/names.ts';
import {
  decodeChallengeId,
  deriveNonce,
  encodeChallengeId,
  isUseTokenOf,
  newUseToken,
  newUseTokenNonce,
} from '../../src/crypto/tokens.ts';
import { flipped, keysFrom, keysOf, readVectors } from './vectors.ts';

const vectors = readVectors<{
  root_key: string;
  challenges: {
    readonly name: string;
    readonly challenge_id: ChallengeId;
    readonly issued_at: number;
    readonly was_issued_to_agent: boolean;
    readonly bound_to: string;
    readonly nonce: string;
  }[];
  tampered: { readonly name: string; readonly challenge_id: ChallengeId }[];
}>('challenges-v1.json');
const key = keysOf(vectors.root_key).challenge;
const otherKey = keysFrom(5).challenge;

const NOW = Date.UTC(2026, 0, 31);
const toBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex');
const toId = (bytes: Buffer): ChallengeId =>
  bytes.toString('hex').replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, '$1-$2-$3-$4-$5') as ChallengeId;

test('the frozen ids decode to their inputs, and their nonces equal the frozen ones', () => {
  assert.notEqual(vectors.challenges.length, 0);
  for (const { name, challenge_id, issued_at, was_issued_to_agent, bound_to, nonce } of vectors.challenges) {
    const expected = { issuedAt: issued_at, wasIssuedToAgent: was_issued_to_agent };
    assert.deepEqual(decodeChallengeId(key, challenge_id), expected, name);
    assert.equal(deriveNonce(key, challenge_id, bound_to).toString('base64'), nonce, name);
  }
});

for (const { name, challenge_id } of vectors.tampered) {
  test(`an invented id is rejected: ${name}`, () => assert.equal(decodeChallengeId(key, challenge_id), null));
}

test('an id reveals its time in milliseconds, and reveals only to the holder of the key whether it is for an agent', () => {
  fc.assert(
    fc.property(fc.nat(2 ** 48 - 1), fc.boolean(), (issuedAt, wasIssuedToAgent) => {
      const id = encodeChallengeId(key, issuedAt, wasIssuedToAgent);
      assert.deepEqual(decodeChallengeId(key, id), { issuedAt, wasIssuedToAgent });
      assert.equal(decodeChallengeId(otherKey, id), null);
    }),
  );
});

test('an id is a UUID of version 8, as the interface defines it and requests are parsed', () => {
  for (const isForAgent of [true, false]) {
    const id = encodeChallengeId(key, NOW, isForAgent);
    assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    assert.equal(grammar.id().parse(id, 'id'), id);
  }
});

test('an id with any single altered bit is rejected', () => {
  for (const isForAgent of [true, false]) {
    for (const { altered, bit } of flipped(toBytes(encodeChallengeId(key, NOW, isForAgent)))) {
      assert.equal(decodeChallengeId(key, toId(altered)), null, `bit ${bit}`);
    }
  }
});

test('an invented id is rejected', () => {
  for (let i = 0; i < 2000; i++) assert.equal(decodeChallengeId(key, randomUUID() as string as ChallengeId), null);
});

test('ids of one millisecond differ randomly in four bytes, except for the fixed bits of a UUID', () => {
  const ids = Array.from({ length: 400 }, () => toBytes(encodeChallengeId(key, NOW, true)));
  const values = [6, 7, 8, 9].map((at) => new Set(ids.map((bytes) => bytes[at])).size);
  // Four, eight, six and eight bits are free.
  assert.ok(
    values.every((count, at) => count > ([12, 150, 48, 150][at] ?? 0)),
    String(values),
  );
});

test('ids do not repeat, and without the key no bit of an id reveals whether it is for an agent', () => {
  const MADE = 2000;
  const ones = [true, false].map((isForAgent) => {
    const ids = Array.from({ length: MADE }, () => toBytes(encodeChallengeId(key, NOW, isForAgent)));
    // 25 random bits a millisecond: some of 2,000 may be the same, nearly all are not.
    assert.ok(new Set(ids.map((id) => id.toString('hex'))).size > MADE - 20);
    return Array.from({ length: 128 }, (_, bit) => ids.filter((id) => ((id[bit >> 3] ?? 0) >> (bit & 7)) & 1).length);
  });
  const [forAgents = [], forOthers = []] = ones;
  for (const [bit, count] of forAgents.entries()) {
    // Ten standard deviations of the difference of two fair counts.
    assert.ok(
      Math.abs(count - (forOthers[bit] ?? 0)) < 320,
      `bit ${bit}: ${count} of agents, ${forOthers[bit]} of others`,
    );
  }
});

test('a nonce is 32 bytes and differs for every id, every agent id and every key', () => {
  const [id, otherId] = [encodeChallengeId(key, NOW, true), encodeChallengeId(key, NOW + 1, true)];
  const nonce = deriveNonce(key, id, 'agent:1');
  assert.equal(nonce.length, 32);
  assert.deepEqual(deriveNonce(key, id, 'agent:1'), nonce);
  const others = [
    deriveNonce(key, id, 'agent:2'),
    deriveNonce(key, id, 'name:1'),
    deriveNonce(key, otherId, 'agent:1'),
    deriveNonce(otherKey, id, 'agent:1'),
  ];
  assert.equal(new Set([nonce, ...others].map((bytes) => bytes.toString('hex'))).size, 5);
});

// Tokens of use leases: bound to the agent and the path by a MAC.

const { row } = keysFrom(1);
const { row: otherRow } = keysFrom(2);
const HOLDER = ['agent id', 'prod/key'] as const;

test('a token is of its holder and key only', () => {
  const token = newUseToken(row, '', newUseTokenNonce(), HOLDER).reveal();
  assert.match(token, /^lhu_[A-Za-z0-9_-]{43}$/);
  assert.equal(isUseTokenOf(row, token, HOLDER), true);
  for (const other of [
    ['agent id', 'prod/other'],
    ['agent 2', 'prod/key'],
    ['agent idprod', '/key'],
  ] as const)
    assert.equal(isUseTokenOf(row, token, other), false);
  assert.equal(isUseTokenOf(otherRow, token, HOLDER), false);
});

test('a token with another character is of no holder', () => {
  const token = newUseToken(row, '', newUseTokenNonce(), HOLDER).reveal();
  for (let at = 4; at < token.length - 1; at++) {
    const changed = token.slice(0, at) + (token[at] === 'A' ? 'B' : 'A') + token.slice(at + 1);
    assert.equal(isUseTokenOf(row, changed, HOLDER), false, changed);
  }
  for (const text of ['', 'lhu_', token.slice(0, -1), `${token}A`, token.replace('lhu_', 'lhs_')])
    assert.equal(isUseTokenOf(row, text, HOLDER), false, text);
});

test('a prefix is kept, and no two tokens are equal', () => {
  const tokens = Array.from({ length: 100 }, () => newUseToken(row, 'SG.', newUseTokenNonce(), HOLDER).reveal());
  assert.equal(new Set(tokens).size, 100);
  for (const token of tokens) assert.equal(token.startsWith('SG.lhu_') && isUseTokenOf(row, token, HOLDER), true);
});
