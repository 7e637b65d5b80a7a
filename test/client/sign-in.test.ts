// The library in the console: a sign-in by passkey, and calls with the session of a browser.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { browserCaller } from '../../src/client/authentication.ts';
import { Leasehold } from '../../src/client/leasehold.ts';
import { Authenticator } from '../kit/authenticator.ts';
import { startTestService } from '../kit/service.ts';
import { toLocalhost } from '../kit/sign-in.ts';
import { withCode } from './fixture.ts';

/** A `fetch` with the cookies of one browser, and the header that browsers add to requests of a page's own origin. */
function browserFetch(): typeof fetch {
  let cookie = '';
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('sec-fetch-site', 'same-origin');
    if (init?.credentials === 'same-origin') headers.set('cookie', cookie);
    const response = await fetch(input, { ...init, headers });
    for (const each of response.headers.getSetCookie()) cookie = each.split(';')[0] ?? '';
    return response;
  };
}

test('a page registers a passkey, signs in with it, calls the server and signs out', async (t) => {
  const service = await startTestService(t);
  const admin = new Leasehold({ address: service.address, token: service.adminToken });
  await admin.operators.add({ name: 'ann', roles: ['viewer'] });
  const { code } = await admin.operators.invite('ann');
  let part: string | null = null;
  const address = toLocalhost(service.address);
  const page = new Leasehold({ address, fetch: browserFetch(), caller: browserCaller(() => part) });
  const authenticator = new Authenticator();

  const creation = await page.signIn.registrationOptions({ code });
  const made = authenticator.register(creation.options, { origin: address });
  const { challenge_id } = creation;
  const response = { ...made, type: 'public-key' as const };
  const passkey = await page.signIn.registerPasskey({ challenge_id, response, label: 'laptop', code });
  assert.deepEqual([passkey.label, passkey.id], ['laptop', authenticator.id]);

  const asked = await page.signIn.passkeyOptions();
  const signed = { ...authenticator.signIn(asked.options, { origin: address }), type: 'public-key' as const };
  const opened = await page.signIn.verifyPasskey({ challenge_id: asked.challenge_id, response: signed });
  await assert.rejects(page.agents.list(), withCode('UNAUTHENTICATED', 401));
  part = opened.session_part;
  const session = await page.readSession();
  assert.deepEqual([session.agent_name, session.session_id], ['operator:ann', null]);
  assert.equal((await page.renewSession()).agent_name, 'operator:ann');
  assert.equal((await page.operators.read('ann')).passkeys[0]?.label, 'laptop');
  await page.logOut();
  await assert.rejects(page.readSession(), withCode('UNAUTHENTICATED', 401));
  await admin.operators.removePasskey('ann', passkey.id);
});

interface Sent {
  readonly credentials: string | undefined;
  readonly authorization: string | undefined;
  readonly part: string | string[] | undefined;
}

/** A server that records each call; the options of `fetch` are those that a browser would obey. */
async function startRecorder(t: TestContext) {
  const sent: Sent[] = [];
  let credentials: string | undefined;
  const server = createServer(({ headers }, response) => {
    sent.push({ credentials, authorization: headers.authorization, part: headers['x-leasehold-session-part'] });
    response.setHeader('content-type', 'application/json').end('{"data":[]}');
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const record: typeof fetch = (input, init) => {
    credentials = init?.credentials;
    return fetch(input, init);
  };
  return { sent, record, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a browser session sends its part and the cookie, and no Authorization header', async (t) => {
  const { sent, record, address } = await startRecorder(t);
  let part: string | null = 'half';
  const client = new Leasehold({ address, fetch: record, caller: browserCaller(() => part) });
  await client.policies.list();
  part = null;
  await client.policies.list();
  assert.deepEqual(sent, [
    { credentials: 'same-origin', authorization: undefined, part: 'half' },
    { credentials: 'same-origin', authorization: undefined, part: undefined },
  ]);
});

test('a token is sent without cookies', async (t) => {
  const { sent, record, address } = await startRecorder(t);
  await new Leasehold({ address, fetch: record, token: 'lhs_token' }).policies.list();
  assert.deepEqual(sent, [{ credentials: 'omit', authorization: 'Bearer lhs_token', part: undefined }]);
});

test('one kind of authentication is given', () => {
  const caller = browserCaller(() => null);
  assert.throws(() => new Leasehold({ address: 'http://127.0.0.1', token: 'a', caller }), { code: 'BAD_OPTIONS' });
});
