// The claims of an identity provider are checked by the rules of the stored fields before they reach the ledger.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { OperatorName } from '../../src/core/names.ts';
import { encodeState } from '../../src/crypto/sign-in-codes.ts';
import { encodeChallengeId } from '../../src/crypto/tokens.ts';
import { NewOperator } from '../../src/vault/operators/operator.ts';
import { addOperator } from '../../src/vault/operators/operator-keys.ts';
import type { OidcClient } from '../../src/vault/ports.ts';
import { signInWithIdentity } from '../../src/vault/sessions/sign-in.ts';
import type { Scope } from '../kit/directory.ts';
import { admin, openVault, outcomeOf, readLog } from './fixture.ts';

const CALLBACK = 'https://vault.example/console/callback';
const NAME = 'operator:ann' as OperatorName;

/** A vault with the operator `ann`, who has the e-mail address, and a provider that vouches for anyone. */
async function openWithAnn(scope: Scope) {
  const vouched = { issuer: 'https://login.example', subject: '', email: 'ann@example.com', isEmailVerified: true };
  const oidc: OidcClient = {
    issuer: vouched.issuer,
    label: 'login.example',
    authorizationUrl: async () => assert.fail('no sign-in begins'),
    redeem: async () => vouched,
  };
  const vault = await openVault(scope);
  const given = { name: 'ann', roles: ['viewer'], identity: { email: vouched.email } };
  await addOperator({ ...vault, oidc }, admin(), NewOperator.parse(given));
  const signIn = (claims: { readonly subject: string; readonly email?: string; readonly issuer?: string }) => {
    Object.assign(vouched, claims);
    const id = encodeChallengeId(vault.keys.challenge, vault.clock.now(), false);
    const request = { code: 'a code', state: encodeState(vault.keys.challenge, id, CALLBACK) };
    const { requestId, remoteAddr } = admin();
    return outcomeOf(signInWithIdentity(vault, oidc, { requestId, remoteAddr }, CALLBACK, request));
  };
  const subject = () => vault.ledger.memory.control.operatorByName(NAME)?.identity?.subject;
  return { vault, signIn, subject };
}

test('a subject that breaks the rule of its field signs in no one, and is not stored', async (t) => {
  const { vault, signIn, subject } = await openWithAnn(t);
  const before = (await readLog(vault.real)).length;
  for (const wrong of ['', 'x'.repeat(256), 'a\u0000b', 'a\ud800', 'j\u00fcrgen', 'a\nb', '\u202ea'])
    assert.equal(await signIn({ subject: wrong }), 'AUTH_FAILED', JSON.stringify(wrong));
  assert.equal(await signIn({ subject: 'ann', issuer: `https://${'x'.repeat(3000)}` }), 'AUTH_FAILED');
  assert.equal(subject(), null);
  assert.deepEqual(vault.failures, []);
  assert.equal((await readLog(vault.real)).length, before);
});

test('a subject may have spaces and 255 characters', async (t) => {
  for (const right of ['Ann Example', 'x'.repeat(255), ' ~']) {
    const { signIn, subject } = await openWithAnn(t);
    assert.equal(await signIn({ subject: right }), 'ok');
    assert.equal(subject(), right);
  }
});

test('an e-mail address that breaks the rule of its field names no one, and a bound subject signs in with it', async (t) => {
  const { signIn } = await openWithAnn(t);
  const wrong = 'a\u0000@example.com';
  assert.equal(await signIn({ subject: 'ann', email: wrong }), 'AUTH_FAILED');
  assert.equal(await signIn({ subject: 'ann', email: 'ann@example.com' }), 'ok');
  assert.equal(await signIn({ subject: 'ann', email: wrong }), 'ok');
});
