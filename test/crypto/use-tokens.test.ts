// Tokens of use leases: bound to the agent and the path by a MAC.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isUseTokenOf, newUseToken, newUseTokenNonce } from '../../src/crypto/tokens.ts';
import { keysFrom } from './vectors.ts';

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
