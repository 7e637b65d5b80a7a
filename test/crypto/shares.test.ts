// Shares of a slot's secret, and the secret of a passphrase.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newPassphraseParameters, PASSPHRASE_COST, passphraseSecret } from '../../src/crypto/key-slots.ts';
import { combineShares, newShares, parseShare } from '../../src/crypto/shares.ts';
import { Secret } from '../../src/vault/credentials/credential.ts';

const parsed = (text: Secret | undefined) => parseShare(text?.reveal() ?? '') ?? assert.fail('not a share');

test('any threshold of the shares restore the secret, and fewer do not', async () => {
  const { secret, group, shares } = await newShares(5, 3);
  const all = shares.map(parsed);
  assert.deepEqual(
    all.map((share) => [share.group, share.threshold, share.index]),
    [1, 2, 3, 4, 5].map((index) => [group, 3, index]),
  );
  for (const [a, b, c] of [
    [0, 1, 2],
    [4, 2, 0],
    [1, 3, 4],
  ] as const) {
    const chosen = [all[a], all[b], all[c]].filter((share) => share !== undefined);
    assert.deepEqual(await combineShares(chosen), secret);
    assert.notDeepEqual(await combineShares(chosen.slice(0, 2)), secret);
  }
  const { shares: others } = await newShares(5, 3);
  assert.notDeepEqual(await combineShares([parsed(others[0]), parsed(shares[1]), parsed(shares[2])]), secret);
});

test('each single mistyped letter of a share is found; case, spaces and hyphens do not matter', async () => {
  const { shares } = await newShares(2, 2);
  const text = shares[0]?.reveal() ?? '';
  assert.match(text, /^(?:[A-Z2-7]{6}-){11}[A-Z2-7]{6}$/);
  const right = parseShare(text);
  assert.deepEqual(parseShare(` ${text.toLowerCase().replaceAll('-', ' ')}\n`), right);
  for (const [at, letter] of [...text].entries()) {
    if (letter === '-') continue;
    for (const other of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.replace(letter, '')) {
      assert.equal(parseShare(text.slice(0, at) + other + text.slice(at + 1)), null);
    }
  }
  for (const bad of ['', text.slice(1), `${text}A`, text.replace(/[A-Z]/, '1')]) assert.equal(parseShare(bad), null);
});

test('a passphrase has one secret in composed and decomposed form, and another salt gives another one', async () => {
  const parameters = newPassphraseParameters();
  const [composed, decomposed] = ['gr\u00fcn', 'gru\u0308n'].map((text) => new Secret(text));
  assert.ok(composed && decomposed);
  const secret = await passphraseSecret(composed, parameters);
  assert.equal(secret?.length, 32);
  assert.deepEqual(await passphraseSecret(decomposed, parameters), secret);
  const otherSalt = { ...parameters, salt: newPassphraseParameters()['salt'] ?? '' };
  assert.notDeepEqual(await passphraseSecret(composed, otherSalt), secret);
  assert.deepEqual(PASSPHRASE_COST, { memory_kib: 65_536, passes: 3, lanes: 1 });
});

test('altered parameters neither throw, nor take all memory, nor make the passphrase cheap to guess', async () => {
  const good = newPassphraseParameters();
  const bad = [
    { salt: 'short' },
    { memory_kib: 2 ** 40 },
    { memory_kib: 1024 ** 2 + 1 },
    { memory_kib: 65_535 },
    { passes: 2 },
    { passes: 17 },
    { lanes: 0 },
    { lanes: 17 },
    { passes: 'x' },
  ];
  for (const change of bad) assert.equal(await passphraseSecret(new Secret('x'), { ...good, ...change }), null);
  assert.equal(await passphraseSecret(new Secret('x'), {}), null);
});
