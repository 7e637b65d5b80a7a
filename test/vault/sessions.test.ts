// Logins and sessions: bound to the immutable id of the agent, and invalid after their end.

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { test } from 'node:test';
import type { AgentId, ChallengeId } from '../../src/core/names.ts';
import { hashToken } from '../../src/crypto/tokens.ts';
import { withMac } from '../../src/ledger/authenticated-rows.ts';
import { findSession } from '../../src/ledger/vault-state.ts';
import { readNewestState } from '../../src/store/recorded-states.ts';
import { readSession as readStoredSession } from '../../src/store/vault-metadata.ts';
import { deregisterAgent } from '../../src/vault/agents/registration.ts';
import { issueChallenge, login } from '../../src/vault/sessions/login.ts';
import { VerifyRequest } from '../../src/vault/sessions/session.ts';
import { endSession, readSession } from '../../src/vault/sessions/session-operations.ts';
import { executeSql } from '../kit/direct-db.ts';
import { as, enrol, logIn, newAgentKey, toName, unchecked } from './agents-fixture.ts';
import { admin, inFrontOfReads, newGate, openVault, outcomeOf, readLog, settle, verify } from './fixture.ts';

const ORIGIN = { requestId: 'login', remoteAddr: '192.0.2.7' };

test('an agent registered again under the name, with the same key, cannot use a challenge of the earlier one', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const { challengeId, nonce } = await issueChallenge(vault, toName('ci'));
  const token = (await logIn(vault, 'ci', key)).token.reveal();
  await deregisterAgent(vault, admin(), toName('ci'));
  await enrol(vault, 'ci', key);
  const proof = { challengeId, agentName: toName('ci'), signature: sign(null, nonce, key.privateKey) };
  assert.equal(await outcomeOf(login(vault, ORIGIN, proof)), 'AUTH_FAILED');
  assert.equal(await outcomeOf(as(vault, token)), 'UNAUTHENTICATED');
  assert.equal(await outcomeOf(logIn(vault, 'ci', key)), 'ok');
});

test('a session that is renewed while a request authenticates with it is found', async (t) => {
  const { store, keys, ledger } = await openVault(t);
  const now = Date.now();
  const first = {
    tokenHash: hashToken('lhs_of-an-operator'),
    agentId: crypto.randomUUID() as AgentId,
    issuedAt: now,
    expiresAt: now + 60_000,
    endsAt: now + 600_000,
  };
  const renewed = withMac(keys.row, 'session', { ...first, expiresAt: now + 120_000 });
  const rows = [withMac(keys.row, 'session', first), renewed];
  // The renewal is committed between the two reads.
  const renewing = inFrontOfReads(
    inFrontOfReads(store, readStoredSession, async () => rows.shift() ?? renewed),
    readNewestState,
    async () => renewed.mac,
  );
  assert.deepEqual(await findSession(ledger.memory, renewing, keys, first.tokenHash), renewed);
  // A row that the log does not record is not found.
  const altered = inFrontOfReads(renewing, readNewestState, async () => 'another');
  assert.equal(await findSession(ledger.memory, altered, keys, first.tokenHash), null);
});

test('a challenge works once, also for concurrent logins', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const { challengeId, nonce } = await issueChallenge(vault, toName('ci'));
  const proof = { challengeId, agentName: toName('ci'), signature: sign(null, nonce, key.privateKey) };
  const outcomes = await Promise.all(Array.from({ length: 8 }, () => outcomeOf(login(vault, ORIGIN, proof))));
  assert.deepEqual(outcomes.sort(), [...Array<string>(7).fill('AUTH_FAILED'), 'ok']);
  const again = await openVault(t, { directory: vault.directory });
  assert.equal(await outcomeOf(login(again, ORIGIN, proof)), 'AUTH_FAILED');
});

test('a signature over the nonce or its base64 text is accepted, and no other', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const forms: readonly (readonly [outcome: string, toSign: (nonce: Buffer) => Buffer])[] = [
    ['ok', (nonce) => nonce],
    ['ok', (nonce) => Buffer.from(nonce.toString('base64'))],
    ['AUTH_FAILED', (nonce) => Buffer.from(nonce.toString('hex'))],
    ['AUTH_FAILED', (nonce) => Buffer.from(nonce.toString('base64url'))],
    ['AUTH_FAILED', (nonce) => Buffer.from(`${nonce.toString('base64')}\n`)],
    ['AUTH_FAILED', () => Buffer.alloc(0)],
  ];
  for (const [outcome, toSign] of forms) {
    assert.equal(await outcomeOf(logIn(vault, 'ci', key, toSign)), outcome);
  }
});

test('a signature has one spelling: canonical base64', () => {
  // It has letters that base64url spells differently.
  const bytes = Buffer.alloc(64, 0xfb);
  const text = bytes.toString('base64');
  const proof = { challenge_id: crypto.randomUUID(), agent_name: 'ci' };
  const signatureIn = (signature: string) => VerifyRequest.parse({ ...proof, signature }).signature;
  assert.equal(signatureIn(text), text);
  // A wrong length is a failed login.
  assert.equal(signatureIn('A'.repeat(8000)).length, 8000);
  for (const other of [
    '',
    text.replaceAll('=', ''),
    `${text}=`,
    ` ${text}`,
    `${text}\n`,
    `${text.slice(0, 40)}\n${text.slice(40)}`,
    bytes.toString('base64url'),
    // The last letter has four unused bits: the next one decodes to the same bytes.
    `${text.slice(0, -3)}${String.fromCharCode(text.charCodeAt(text.length - 3) + 1)}==`,
  ]) {
    assert.throws(() => signatureIn(other), { code: 'INVALID_REQUEST' }, JSON.stringify(other));
  }
});

test('an attempt with a forged id or an unknown name gets the same error and leaves no entry', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const before = (await readLog(vault.real)).length;
  const invented = { challengeId: '6f1c2f9e-8f52-8f0e-9f3b-1d2e3c4b5a69' as ChallengeId, agentName: toName('ci') };
  assert.equal(await outcomeOf(login(vault, ORIGIN, { ...invented, signature: new Uint8Array(64) })), 'AUTH_FAILED');
  assert.equal(await outcomeOf(logIn(vault, 'nobody', key)), 'AUTH_FAILED');
  assert.equal((await readLog(vault.real)).length, before);
  assert.equal((await verify(vault)).isValid, true);
});

test('a session survives a restart, and an ended one stays ended, even if its row is inserted again', async (t) => {
  const vault = await openVault(t);
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const token = (await logIn(vault, 'ci', key)).token.reveal();
  const again = await openVault(t, { directory: vault.directory });
  assert.equal((await again.ledger.submit(readSession(await as(again, token)))).agentName, 'ci');
  const caller = await as(again, token);
  await executeSql(again.directory, 'CREATE TABLE kept_sessions AS SELECT * FROM sessions');
  await again.ledger.submit(endSession(caller));
  const assertEnded = async (): Promise<void> => {
    assert.equal(await outcomeOf(as(again, token)), 'UNAUTHENTICATED');
    assert.equal(await outcomeOf(again.ledger.submit(readSession(caller))), 'UNAUTHENTICATED');
  };
  await assertEnded();
  await executeSql(again.directory, 'INSERT INTO sessions SELECT * FROM kept_sessions; DROP TABLE kept_sessions');
  await assertEnded();
  assert.equal((await readLog(again.real)).filter((entry) => entry.event_type === 'session.end').length, 1);
});

test('a session that is ended while it is read stays ended', async (t) => {
  const gate = newGate();
  let isSlow = false;
  const vault = await openVault(t, {
    inFront: (store) =>
      // A commit overtakes a response in transit, as over a network.
      inFrontOfReads(store, readStoredSession, async (read) => {
        const found = await read();
        if (isSlow) await gate.pass;
        return found;
      }),
  });
  const key = newAgentKey();
  await enrol(vault, 'ci', key);
  const token = (await logIn(vault, 'ci', key)).token.reveal();
  const own = unchecked(token, 'ci');
  isSlow = true;
  const late = outcomeOf(as(vault, token));
  await settle();
  await vault.ledger.submit(endSession(own));
  gate.open();
  await late;
  assert.equal(await outcomeOf(vault.ledger.submit(readSession(own))), 'UNAUTHENTICATED');
  assert.equal(await outcomeOf(as(vault, token)), 'UNAUTHENTICATED');
});
