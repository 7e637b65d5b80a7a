// Sign-ins at a real provider of OpenID Connect, with the authorization code flow. SOURCE: docs/operators.md, "Signing
// in".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { createClient } from '../kit/client.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { rawRequest, sendRaw, toResponse } from '../kit/raw.ts';
import { assertInvalid, assertRejected, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, openBrowser, sessionHeaders, toLocalhost } from '../kit/sign-in.ts';

const OPERATORS = '/api/v1/operators';
const provider = await startProvider({ after });
const service = await startTestService({ after }, provider.flags);
const { admin } = service;
const browser = openBrowser(service);
provider.allow(`${browser.origin}/console/callback`);

type Account = Parameters<typeof provider.visit>[1];
let made = 0;
const newName = () => `person-${++made}`;
const add = (identity: object, name = newName()) => admin.post(OPERATORS, { name, roles: ['viewer'], identity });
const begin = async () => (await browser.post(`${AUTH}/oidc/options`, {})).body.data;
const verify = (returned: { code: string; state: string }) => browser.post(`${AUTH}/oidc/verify`, returned);
const signIn = async (account: Account) => verify(await provider.visit((await begin()).url, account));
const lastOf = async (name: string) =>
  (await admin.get(`/api/v1/audit?agent=operator:${name}&event_type=auth.verify&limit=1`)).body.data[0];
const lastSeq = async () => (await admin.get('/api/v1/audit?limit=1')).body.data[0].seq;

test('an operator signs in with the subject at the provider', async () => {
  assert.deepEqual((await browser.get(`${AUTH}/methods`)).body.data.oidc, { label: new URL(provider.issuer).host });
  const name = newName();
  const added = (await add({ subject: 'sub-1' }, name)).body.data;
  assert.deepEqual(added.identity, { issuer: provider.issuer, subject: 'sub-1', email: null });
  assert.equal(added.public_key, null);
  const { url, state } = await begin();
  const { searchParams } = new URL(url);
  const asked = ['response_type', 'scope', 'code_challenge_method', 'redirect_uri'].map((each) =>
    searchParams.get(each),
  );
  assert.deepEqual(asked, ['code', 'openid email', 'S256', `${browser.origin}/console/callback`]);
  const returned = await provider.visit(url, { subject: 'sub-1' });
  assert.equal(returned.state, state);
  const opened = await verify(returned);
  assert.equal(dataOf(opened, 200, 'agent_name expires_at expires_in session_part').agent_name, `operator:${name}`);
  const headers = { ...sessionHeaders(opened), 'sec-fetch-site': 'same-origin' };
  assert.equal((await browser.call('GET', '/api/v1/agents', undefined, headers)).status, 200);
  assert.deepEqual((await lastOf(name)).reason, 'by the identity provider');
});

test('a verified e-mail address is bound to its subject by the first sign-in', async () => {
  const name = newName();
  await add({ email: 'Ann@example.com' }, name);
  assert.equal((await signIn({ subject: 'sub-ann', email: 'ann@example.com' })).status, 200);
  const { identity } = (await admin.get(`${OPERATORS}/${name}`)).body.data;
  assert.deepEqual(identity, { issuer: provider.issuer, subject: 'sub-ann', email: 'Ann@example.com' });
  assert.match((await lastOf(name)).reason, /bound to its subject now$/);
  // The address was given to another person.
  assertRejected(await signIn({ subject: 'sub-next', email: 'ann@example.com' }), 'AUTH_FAILED');
  assert.equal((await signIn({ subject: 'sub-ann', email: 'other@example.com' })).status, 200);
});

test('an e-mail address that the provider has not verified signs in no one, which is recorded', async () => {
  const name = newName();
  await add({ email: 'bob@example.com' }, name);
  assertRejected(await signIn({ subject: 'sub-bob', email: 'bob@example.com', isVerified: false }), 'AUTH_FAILED');
  const entry = await lastOf(name);
  assert.deepEqual(
    [entry.result, entry.reason],
    ['denied', 'the identity provider has not verified the e-mail address'],
  );
});

test('an unknown subject, and one that an operator has at no provider, leave no entry', async () => {
  const before = await lastSeq();
  assertRejected(await signIn({ subject: 'sub-unknown', email: 'unknown@example.com' }), 'AUTH_FAILED');
  assert.equal(await lastSeq(), before);
});

test('another state, a repeated code and a code of another sign-in are rejected', async () => {
  await add({ subject: 'sub-2' });
  const returned = await provider.visit((await begin()).url, { subject: 'sub-2' });
  const other = await begin();
  for (const state of ['x', `${returned.state}A`, `B${returned.state.slice(1)}`]) {
    assertRejected(await verify({ ...returned, state }), 'AUTH_FAILED');
  }
  // The verifier and the nonce are those of the other state.
  assertRejected(await verify({ ...returned, state: other.state }), 'AUTH_FAILED');
  const again = await provider.visit((await begin()).url, { subject: 'sub-2' });
  assert.equal((await verify(again)).status, 200);
  assertRejected(await verify(again), 'AUTH_FAILED');
  assertRejected(await verify({ ...again, code: 'invented' }), 'AUTH_FAILED');
});

test('a forged state costs no request to the provider', async () => {
  const before = provider.seen.length;
  assertRejected(await verify({ code: 'x', state: 'A'.repeat(43) }), 'AUTH_FAILED');
  assert.equal(provider.seen.length, before);
});

test('an identity names either a subject or an e-mail address, is one operator’s, and changes with its sessions', async () => {
  assertInvalid(await add({}), 'identity');
  assertInvalid(await add({ subject: 'a', email: 'a@example.com' }), 'identity');
  assertInvalid(await add({ email: 'none' }), 'identity');
  assertInvalid(await add({ subject: 'a\tb' }), 'identity');
  const name = newName();
  await add({ subject: 'sub-3' }, name);
  assertRejected(await add({ subject: 'sub-3' }), 'ALREADY_EXISTS');
  const opened = await signIn({ subject: 'sub-3' });
  const headers = { ...sessionHeaders(opened), 'sec-fetch-site': 'same-origin' };
  const read = () => browser.call('GET', '/api/v1/auth/session', undefined, headers);
  assert.equal((await admin.put(`${OPERATORS}/${name}`, { roles: ['approver'] })).body.data.identity.subject, 'sub-3');
  assert.equal((await read()).status, 200);
  const changed = await admin.put(`${OPERATORS}/${name}`, { roles: ['viewer'], identity: null });
  assert.equal(changed.body.data.identity, null);
  assertRejected(await read(), 'UNAUTHENTICATED');
  assertRejected(await signIn({ subject: 'sub-3' }), 'AUTH_FAILED');
});

test('an ID token for another client, of another sign-in, expired or with another signature signs in no one', async (t) => {
  t.after(() => provider.break({}));
  await add({ subject: 'sub-4' });
  assert.equal((await signIn({ subject: 'sub-4' })).status, 200);
  const before = await lastSeq();
  const expiresAt = Math.floor(Date.now() / 1000) - 3600;
  const faults = [{ audience: 'another' }, { nonce: 'another' }, { expiresAt }, { hasOtherSignature: true }] as const;
  for (const fault of faults) {
    provider.break(fault);
    assertRejected(await signIn({ subject: 'sub-4' }), 'AUTH_FAILED');
  }
  assert.equal(await lastSeq(), before);
});

test('a provider that has stopped fails its sign-ins alone, with 503', async (t) => {
  const gone = await startProvider(t);
  const own = await startTestService(t, gone.flags);
  await gone.stop();
  const page = openBrowser(own);
  const answer = await page.post(`${AUTH}/oidc/options`, {});
  assertRejected(answer, 'UNAVAILABLE');
  assert.ok(Number(answer.headers.get('retry-after')) > 0);
  assert.equal((await own.admin.get('/api/v1/credentials')).status, 200);
  const { oidc } = (await page.get(`${AUTH}/methods`)).body.data;
  assert.deepEqual(oidc, { label: new URL(gone.issuer).host });
});

test('without a provider its routes are 404, and no operator gets an identity', async (t) => {
  const own = await startTestService(t);
  const page = openBrowser(own);
  assert.equal(toLocalhost(own.address), page.origin);
  assertRejected(await page.post(`${AUTH}/oidc/options`, {}), 'NOT_FOUND');
  const identity = { subject: 'sub-1' };
  assertInvalid(await own.admin.post(OPERATORS, { name: 'ann', roles: ['viewer'], identity }), 'identity');
});

test('the provider returns only to an address that no other program can have', async () => {
  assert.equal((await createClient(service.address, null).get(`${AUTH}/methods`)).body.data.oidc, null);
  const port = Number(new URL(service.address).port);
  const wrong = ['127.0.0.1', `127.0.0.1:${port}`, `localhost:${port + 1}`, 'localhost', `[::1]:${port}`];
  for (const host of wrong) {
    const send = async (path: string, body: object) => {
      const head = [`POST ${AUTH}/oidc/${path} HTTP/1.1`, `Host: ${host}`, 'Content-Type: application/json'];
      const text = JSON.stringify(body);
      const lines = [...head, `Content-Length: ${text.length}`, 'Connection: close'];
      return toResponse(await sendRaw(service.address, rawRequest(lines, text)));
    };
    assertInvalid(await send('options', {}), 'Host');
    assertInvalid(await send('verify', { code: 'x', state: 'y' }), 'Host');
  }
});

test('e-mail addresses are equal but for the case of ASCII letters', async () => {
  await add({ email: 'kim@example.com' });
  assertRejected(await add({ email: 'KIM@example.com' }), 'ALREADY_EXISTS');
  // The Kelvin sign, which is k in lower case.
  assert.equal((await add({ email: '\u212aim@example.com' })).status, 201);
});

test('sign-ins at the provider are charged to the budget of the operator’s sessions', async (t) => {
  const own = await startTestService(t, [...provider.flags, '--sessions-per-hour=1']);
  const page = openBrowser(own);
  provider.allow(`${page.origin}/console/callback`);
  await own.admin.post(OPERATORS, { name: 'ann', roles: ['viewer'], identity: { subject: 'sub-5' } });
  const enter = async () => {
    const { url } = (await page.post(`${AUTH}/oidc/options`, {})).body.data;
    return page.post(`${AUTH}/oidc/verify`, await provider.visit(url, { subject: 'sub-5' }));
  };
  assert.equal((await enter()).status, 200);
  assertRejected(await enter(), 'RATE_LIMITED');
});
