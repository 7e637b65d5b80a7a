/**
 * An agent's sessions: one for all calls, replaced before it expires or after it was ended, and none after a logout.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Leasehold } from '../../src/client/leasehold.ts';
import { startTestClock } from '../kit/test-clock.ts';
import { AGENT, setScene, throughProxy, withCode } from './fixture.ts';

const shared = await setScene({ after });

const MINUTE_MS = 60_000;
const path = 'prod/db/password';
const retrieve = (vault: Leasehold) => vault.credentials.retrieve(path);
const retrievals = `GET /api/v1/credentials/${path}`;

test('concurrent first calls share one login, and all later calls its session', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  await Promise.all(Array.from({ length: 20 }, () => retrieve(vault)));
  await retrieve(vault);
  assert.deepEqual([between.count('POST /auth/challenge'), between.count('POST /auth/verify')], [1, 1]);
  const tokens = new Set(
    between.seen.filter(({ method }) => method === 'GET').map(({ headers }) => headers.authorization),
  );
  assert.equal(tokens.size, 1);
  assert.equal(
    between.seen.some(({ path: asked, headers }) => asked.startsWith('/auth/') && headers.authorization !== undefined),
    false,
  );
});

test('a session is replaced a minute before it expires, without a rejected call', async (t) => {
  const clock = startTestClock(t);
  const { asAgent, between } = await setScene(t);
  const vault = asAgent();
  const first = await vault.logIn();
  await clock.move(58 * MINUTE_MS);
  assert.equal((await vault.logIn()).session_id.reveal(), first.session_id.reveal());
  await clock.move(1.5 * MINUTE_MS);
  await Promise.all([retrieve(vault), retrieve(vault)]);
  assert.equal(between.count('POST /auth/verify'), 2);
  assert.equal(between.count(retrievals), 2);
  assert.notEqual((await vault.logIn()).session_id.reveal(), first.session_id.reveal());
});

test('a session that was ended is replaced once for all calls that notice it', async (t) => {
  const { asAgent, between, admin } = await throughProxy(t, shared);
  const vault = asAgent();
  await retrieve(vault);
  await admin.agents.deregister(AGENT);
  await assert.rejects(retrieve(vault), withCode('BAD_KEY', null), 'its key was deleted with the agent');

  await admin.agents.register({ name: AGENT });
  await Promise.all([retrieve(vault), retrieve(vault), retrieve(vault)]);
  assert.equal(between.count('POST /auth/verify'), 2);

  const other = asAgent();
  const { session_id } = await other.logIn();
  // Another client with the same token ends the session.
  await fetch(`${between.address}/auth/session`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${session_id.reveal()}` },
  });
  const before = between.count(retrievals);
  await Promise.all([retrieve(other), retrieve(other), retrieve(other)]);
  assert.equal(between.count('POST /auth/verify'), 4);
  assert.ok(between.count(retrievals) - before <= 6);
});

test('a service that rejects each new session too is not called indefinitely', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  const refusal = JSON.stringify({ error: { code: 'SESSION_EXPIRED', message: 'The session has ended.' } });
  for (let at = 0; at < 5; at++) between.next({ status: 401, body: refusal }, ({ method }) => method === 'GET');
  await assert.rejects(retrieve(vault), withCode('SESSION_EXPIRED', 401));
  assert.equal(between.count(retrievals), 2);
});

test('logging out ends the session for all calls, and the next call begins another', async (t) => {
  const { asAgent, asAdmin, between } = await throughProxy(t, shared);
  const vault = asAgent();
  await vault.logOut();
  assert.equal(between.seen.length, 0, 'there was none');
  const { session_id } = await vault.logIn();
  await vault.logOut();
  await vault.logOut();
  assert.equal(between.count('DELETE /auth/session'), 1);
  const stolen = { headers: { authorization: `Bearer ${session_id.reveal()}` } };
  assert.equal((await fetch(`${between.address}/auth/session`, stolen)).status, 401);
  await retrieve(vault);
  assert.equal(between.count('POST /auth/verify'), 2);
  await assert.rejects(asAdmin().logIn(), withCode('BAD_OPTIONS', null));
});

test('logging out waits for a login in flight, and never starts a session to end it', async (t) => {
  const { asAgent, between, admin } = await setScene(t);
  const vault = asAgent();
  const [session] = await Promise.all([vault.logIn(), vault.logOut()]);
  const headers = { authorization: `Bearer ${session.session_id.reveal()}` };
  assert.equal((await fetch(`${between.address}/auth/session`, { headers })).status, 401);

  await vault.logIn();
  await admin.agents.deregister(AGENT);
  await vault.logOut();
  assert.equal(between.count('POST /auth/verify'), 2);
});

test('a logout whose response was lost succeeds', async (t) => {
  const { asAgent, between } = await throughProxy(t, shared);
  const vault = asAgent();
  await vault.logIn();
  between.next('cut after', ({ method }) => method === 'DELETE');
  await vault.logOut();
  assert.deepEqual([between.count('DELETE /auth/session'), between.count('POST /auth/verify')], [2, 1]);
});
