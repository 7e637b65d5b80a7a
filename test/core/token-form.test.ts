// The search for tokens in a request that would be forwarded.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findTokens, hasToken, isUseToken, wholeTokens } from '../../src/vault/use/token-form.ts';

const RANDOM = 'aB3-_'.padEnd(43, 'x');
const USE = `lhu_${RANDOM}`;
const SESSION = `lhs_${RANDOM}`;
const EMPTY = { path: '/', query: '', headers: [] };

test('tokens are found in each part, also inside longer texts and percent-encoded', () => {
  assert.deepEqual(findTokens(EMPTY), []);
  assert.deepEqual(findTokens({ ...EMPTY, path: `/a/${USE}/b` }), [{ token: USE, place: 'path' }]);
  assert.deepEqual(findTokens({ ...EMPTY, query: `?a=%${'6C'}${USE.slice(1)}` }), [{ token: USE, place: 'query' }]);
  const headers = [
    ['x-own', `a${USE}b ${SESSION}`],
    [`lha_${RANDOM}`, '%'],
  ] as const;
  assert.deepEqual(findTokens({ ...EMPTY, headers }), [
    { token: USE, place: 'header' },
    { token: SESSION, place: 'header' },
    { token: `lha_${RANDOM}`, place: 'header' },
  ]);
});

test('behind the prefix of an SDK’s keys, both readings are found', () => {
  const found = findTokens({ ...EMPTY, query: `?key=SG.${USE}` }).map(({ token }) => token);
  assert.deepEqual(found, [`SG.${USE}`, USE]);
});

test('texts that are too short or of another kind are no tokens', () => {
  for (const text of ['', 'lhu_', USE.slice(0, -1), `lhx_${RANDOM}`, `LHU_${RANDOM}`, '%', '%6', 'lhu_%zz'])
    assert.equal(hasToken(text), false, text);
});

test('a whole token has nothing of its alphabet behind it', () => {
  assert.deepEqual(wholeTokens(`"${USE}", ${SESSION}`), [USE, SESSION]);
  assert.deepEqual(wholeTokens(`${USE}x lha_${RANDOM}`), []);
  assert.deepEqual([USE, `SG.${USE}`, SESSION, `${USE}x`, `x${USE}`].map(isUseToken), [
    true,
    true,
    false,
    false,
    false,
  ]);
});
