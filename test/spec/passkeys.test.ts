// Passkeys: registered with an enrolment code or by a signed-in operator, and used to sign in to the console.
// SOURCE: docs/operators.md, "Signing in"; docs/api.md, "Signing in to the console".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Authenticator } from '../kit/authenticator.ts';
import { createClient, type TestResponse } from '../kit/client.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { addOperator, newOperatorKey } from '../kit/operators.ts';
import { rawRequest, sendRaw, toResponse } from '../kit/raw.ts';
import { assertInvalid, assertRejected, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { AUTH, addWithPasskey, invite, openBrowser, sessionHeaders } from '../kit/sign-in.ts';

const OPERATORS = '/api/v1/operators';
const service = await startTestService({ after });
const { admin } = service;
const browser = openBrowser(service);
const { origin } = browser;

let made = 0;
const newName = () => `person-${++made}`;
const passkeysOf = async (name: string) => (await admin.get(`${OPERATORS}/${name}`)).body.data.passkeys;
/** The newest entry of the sign-ins of the operator. */
const lastOf = async (name: string, event = 'auth.verify') => {
  const { body } = await admin.get(`/api/v1/audit?agent=operator:${name}&event_type=${event}&limit=1`);
  return body.data[0];
};
const lastSeq = async () => (await admin.get('/api/v1/audit?limit=1')).body.data[0].seq;

async function assertFailed(answer: TestResponse, name: string, reason: RegExp): Promise<void> {
  assertRejected(answer, 'AUTH_FAILED');
  assert.equal(answer.headers.get('set-cookie'), null);
  const entry = await lastOf(name);
  assert.equal(entry.result, 'denied');
  assert.match(entry.reason, reason);
}

test('an enrolment code registers a passkey, once, and the passkey signs in', async () => {
  const name = newName();
  const [code, authenticator] = [await invite(service, name, ['viewer']), new Authenticator()];
  const registered = dataOf(await browser.enrol(code, authenticator), 201, 'id label synced added_at');
  assert.deepEqual([registered.id, registered.label, registered.synced], [authenticator.id, 'laptop', true]);
  assert.deepEqual(await passkeysOf(name), [registered]);
  const entry = await lastOf(name, 'operator.passkey_add');
  assert.deepEqual([entry.resource, entry.result], [`operator:${name}`, 'allowed']);
  assert.match(entry.reason, /laptop, with an enrolment code$/);
  assertRejected(await browser.enrol(code, new Authenticator()), 'AUTH_FAILED');

  const opened = await browser.signIn(authenticator);
  assert.equal(dataOf(opened, 200, 'agent_name expires_at expires_in session_part').agent_name, `operator:${name}`);
  assert.equal(opened.headers.get('cache-control'), 'no-store');
  assert.match((await lastOf(name)).reason, /^by the passkey laptop$/);
  const mine = { ...sessionHeaders(opened), 'sec-fetch-site': 'same-origin' };
  const session = (await browser.call('GET', '/api/v1/auth/session', undefined, mine)).body.data;
  assert.deepEqual([session.agent_name, session.session_id], [`operator:${name}`, undefined]);
});

test('the options ask for discoverable credentials, a verified user and no attestation', async () => {
  const code = await invite(service, newName());
  const { options } = (await browser.post(`${AUTH}/passkey/register-options`, { code })).body.data;
  assert.deepEqual([options.rp.id, options.attestation], ['localhost', 'none']);
  assert.deepEqual(options.authenticatorSelection, {
    residentKey: 'required',
    requireResidentKey: true,
    userVerification: 'required',
  });
  const asked = (await browser.options()).options;
  assert.deepEqual([asked.rpId, asked.userVerification, asked.allowCredentials], ['localhost', 'required', undefined]);
  assert.equal(Buffer.from(asked.challenge, 'base64url').length, 32);
});

test('a sign-in fails for another origin, host, challenge, type or user, and without verification of the user', async () => {
  const name = newName();
  const authenticator = await addWithPasskey(service, name);
  const { port } = new URL(origin);
  const wrong = [
    { origin: `http://localhost:${Number(port) + 1}` },
    { origin: `https://localhost:${port}` },
    { origin: 'http://localhost' },
    { rpId: 'example.com' },
    { challenge: Buffer.alloc(32, 1).toString('base64url') },
    { type: 'webauthn.create' },
    { isVerified: false },
  ];
  for (const page of wrong)
    await assertFailed(await browser.signIn(authenticator, page), name, /not for this challenge/);
  const { challenge_id, options } = await browser.options();
  const other = await addWithPasskey(service, newName());
  const foreign = other.signIn(options, { origin });
  const forged = { ...authenticator.signIn(options, { origin }), response: foreign.response };
  await assertFailed(
    await browser.post(`${AUTH}/passkey/verify`, { challenge_id, response: forged }),
    name,
    /does not fit/,
  );
  const again = await browser.options();
  const response = authenticator.signIn(again.options, { origin }, Buffer.from('another').toString('base64url'));
  const answer = await browser.post(`${AUTH}/passkey/verify`, { challenge_id: again.challenge_id, response });
  await assertFailed(answer, name, /for another user/);
  assert.equal((await browser.signIn(authenticator)).status, 200);
});

test('a challenge works once, also after a failed try', async () => {
  const name = newName();
  const authenticator = await addWithPasskey(service, name);
  for (const page of [{}, { isVerified: false }]) {
    const { challenge_id, options } = await browser.options();
    const verify = (response: object) => browser.post(`${AUTH}/passkey/verify`, { challenge_id, response });
    await verify(authenticator.signIn(options, { origin, ...page }));
    await assertFailed(await verify(authenticator.signIn(options, { origin })), name, /used already/);
  }
});

test('what unknown passkeys and invented challenges send leaves no entry', async () => {
  const name = newName();
  const authenticator = await addWithPasskey(service, name);
  const before = await lastSeq();
  assertRejected(await browser.signIn(new Authenticator()), 'AUTH_FAILED');
  const { options } = await browser.options();
  const response = authenticator.signIn(options, { origin });
  const challenge_id = '01234567-89ab-8def-8123-456789abcdef';
  assertRejected(await browser.post(`${AUTH}/passkey/verify`, { challenge_id, response }), 'AUTH_FAILED');
  const { challenge_id: ofAgents } = (await browser.post('/auth/challenge', { agent_name: `operator:${name}` })).body
    .data;
  const signed = authenticator.signIn(options, { origin });
  const answer = await browser.post(`${AUTH}/passkey/verify`, { challenge_id: ofAgents, response: signed });
  await assertFailed(answer, name, /not for this challenge/);
  assert.equal(await lastSeq(), before + 1);
});

test('a counter that does not rise is a failed sign-in with a separate reason, and a higher one is stored', async () => {
  const name = newName();
  const authenticator = await addWithPasskey(service, name, ['viewer'], new Authenticator(7));
  assert.equal((await browser.signIn(authenticator)).status, 200);
  authenticator.counter = 7;
  await assertFailed(await browser.signIn(authenticator), name, /^the counter of the passkey laptop went backwards/);
  authenticator.counter = 0;
  await assertFailed(await browser.signIn(authenticator), name, /went backwards/);
  authenticator.counter = 8;
  assert.equal((await browser.signIn(authenticator)).status, 200);
});

test('a removed passkey signs in no more, and its sessions end', async () => {
  const name = newName();
  const authenticator = await addWithPasskey(service, name);
  const mine = { ...sessionHeaders(await browser.signIn(authenticator)), 'sec-fetch-site': 'same-origin' };
  const path = `${OPERATORS}/${name}/passkeys/${authenticator.id}`;
  const stranger = await addOperator(service, newName(), ['viewer']);
  assertRejected(await stranger.delete(path), 'ACCESS_DENIED');
  assert.equal((await browser.call('DELETE', path, undefined, mine)).status, 204);
  assertRejected(await browser.call('GET', '/api/v1/auth/session', undefined, mine), 'UNAUTHENTICATED');
  assertRejected(await browser.signIn(authenticator), 'AUTH_FAILED');
  assertRejected(await admin.delete(path), 'NOT_FOUND');
  const { data } = (await admin.get(`/api/v1/audit?event_type=operator.passkey_remove&resource=operator:${name}`)).body;
  const results = data.map(({ result }: { result: string }) => result);
  assert.deepEqual(results, ['not_found', 'allowed', 'denied']);
});

test('a code is for one operator, and a passkey or an end of its sessions voids it', async () => {
  const [ann, bob] = [newName(), newName()];
  const [codeOfAnn, codeOfBob] = [await invite(service, ann), await invite(service, bob)];
  const begun = await browser.post(`${AUTH}/passkey/register-options`, { code: codeOfAnn });
  const { challenge_id, options } = begun.body.data;
  const response = new Authenticator().register(options, { origin });
  const crossed = { challenge_id, response, label: 'x', code: codeOfBob };
  assertInvalid(await browser.post(`${AUTH}/passkey/register`, crossed), 'response');
  const forged = `${codeOfBob.slice(0, 8)}${codeOfAnn.slice(8)}`;
  assertRejected(await browser.enrol(forged, new Authenticator()), 'AUTH_FAILED');
  await admin.post(`${OPERATORS}/${bob}/rotate`, { public_key: newOperatorKey().publicKey });
  assertRejected(await browser.enrol(codeOfBob, new Authenticator()), 'AUTH_FAILED');
  await admin.delete(`${OPERATORS}/${ann}`);
  assertRejected(await browser.enrol(codeOfAnn, new Authenticator()), 'AUTH_FAILED');
  await admin.post(OPERATORS, { name: ann, roles: ['viewer'] });
  assertRejected(await browser.enrol(codeOfAnn, new Authenticator()), 'AUTH_FAILED');
});

test('two registrations with one code: one passkey', async () => {
  const name = newName();
  const code = await invite(service, name);
  const answers = await Promise.all(
    [new Authenticator(), new Authenticator()].map((each) => browser.enrol(code, each)),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 401]);
  assert.equal((await passkeysOf(name)).length, 1);
});

test('a rotation ends sessions and leaves passkeys, which sign in again', async () => {
  const name = newName();
  const authenticator = await addWithPasskey(service, name);
  const mine = { ...sessionHeaders(await browser.signIn(authenticator)), 'sec-fetch-site': 'same-origin' };
  await admin.post(`${OPERATORS}/${name}/rotate`, { public_key: newOperatorKey().publicKey });
  assertRejected(await browser.call('GET', '/api/v1/auth/session', undefined, mine), 'UNAUTHENTICATED');
  assert.equal((await browser.signIn(authenticator)).status, 200);
});

test('an operator registers up to 16 passkeys for itself, none twice, and no other caller does', async () => {
  const name = newName();
  const operator = await addOperator(service, name, ['viewer']);
  const own = createClient(origin, operator.token);
  const register = async (authenticator: Authenticator, label = 'key') => {
    const { challenge_id, options } = (await own.post(`${AUTH}/passkey/register-options`, {})).body.data ?? {};
    if (options === undefined) return own.post(`${AUTH}/passkey/register-options`, {});
    const response = authenticator.register(options, { origin });
    return own.post(`${AUTH}/passkey/register`, { challenge_id, response, label });
  };
  const first = new Authenticator();
  assert.equal((await register(first)).status, 201);
  assertRejected(await register(new Authenticator(0, first.id)), 'ALREADY_EXISTS');
  assertInvalid(await register(new Authenticator(), 'a\u0000b'), 'label');
  for (let count = 1; count < 16; count++) assert.equal((await register(new Authenticator())).status, 201);
  assertInvalid(await register(new Authenticator()), 'passkeys');
  const agent = await service.agent(newName());
  assertRejected(await createClient(origin, agent.token).post(`${AUTH}/passkey/register-options`, {}), 'ACCESS_DENIED');
  assertRejected(
    await createClient(origin, service.adminToken).post(`${AUTH}/passkey/register-options`, {}),
    'ACCESS_DENIED',
  );
  assertRejected(await browser.post(`${AUTH}/passkey/register-options`, {}), 'UNAUTHENTICATED');
});

test('a registration with a certificate, another origin, or an unverified user is rejected', async () => {
  const code = await invite(service, newName());
  for (const page of [{ origin: 'http://localhost' }, { rpId: 'example.com' }, { isVerified: false }])
    assertInvalid(await browser.enrol(code, new Authenticator(), page), 'response');
  const { challenge_id, options } = (await browser.post(`${AUTH}/passkey/register-options`, { code })).body.data;
  const statement = new Map([['x5c', Buffer.from('a certificate whose revocation list would be fetched')]]);
  const response = new Authenticator().register(options, { origin }, { fmt: 'packed', attStmt: statement });
  const answer = await browser.post(`${AUTH}/passkey/register`, { challenge_id, response, label: 'x', code });
  assertInvalid(answer, 'response');
  assert.match(answer.text, /the attestation has certificates/);
});

test('a passkey whose key is longer than its stored field is rejected', async () => {
  const name = newName();
  const code = await invite(service, name);
  const answer = await browser.enrol(code, new Authenticator(0, undefined, 6100));
  assertInvalid(answer, 'response');
  assert.match(answer.text, /response\.publicKey: must be base64url of at most 8192 characters/);
  assert.equal((await browser.enrol(code, new Authenticator(0, undefined, 6000))).status, 201);
});

test('passkeys work at localhost and the port of the server, and errors say so', async () => {
  const { port } = new URL(origin);
  const literal = createClient(service.address, null);
  assert.deepEqual((await browser.get(`${AUTH}/methods`)).body.data, { passkey: true, oidc: null, setup: false });
  assert.equal((await literal.get(`${AUTH}/methods`)).body.data.passkey, false);
  const answer = await literal.post(`${AUTH}/passkey/options`, {});
  assertInvalid(answer, 'Host');
  assert.ok(answer.text.includes(`http://localhost:${port}/console/`), answer.text);
  const host = `localhost:${Number(port) + 1}`;
  const lines = [`POST ${AUTH}/passkey/options HTTP/1.1`, `Host: ${host}`, 'Content-Length: 0'];
  assertInvalid(toResponse(await sendRaw(service.address, rawRequest(lines))), 'Host');
});

test('the last admin that can sign in keeps its role, its passkey and its identity', async (t) => {
  const provider = await startProvider(t);
  const own = await startTestService(t, provider.flags);
  const at = `${OPERATORS}/ann`;
  await addWithPasskey(own, 'ann', ['admin']);
  const remove = async () => {
    const [passkey] = (await own.admin.get(at)).body.data.passkeys;
    return own.admin.delete(`${at}/passkeys/${passkey.id}`);
  };
  // This operator has no way to sign in.
  await invite(own, 'bob', ['admin']);
  assertInvalid(await own.admin.delete(at), 'name');
  assertInvalid(await own.admin.put(at, { roles: ['viewer'] }), 'roles');
  assertInvalid(await remove(), 'id');
  const identity = { subject: 'sub-1' };
  assert.equal((await own.admin.put(at, { roles: ['admin'], identity })).status, 200);
  assert.equal((await remove()).status, 204);
  assertInvalid(await own.admin.put(at, { roles: ['admin'], identity: null }), 'identity');
  assert.equal((await own.admin.delete(`${OPERATORS}/bob`)).status, 204);
  await addOperator(own, 'eve', ['admin']);
  assert.equal((await own.admin.put(at, { roles: ['admin'], identity: null })).status, 200);
});
