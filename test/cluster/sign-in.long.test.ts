// Sign-ins to the console behind a load balancer: nodes share a public name, and each request may reach another node.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Authenticator } from '../kit/authenticator.ts';
import { createClient, type TestResponse } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { startProvider } from '../kit/oidc-provider.ts';
import { addOperator } from '../kit/operators.ts';
import { assertRejected } from '../kit/responses.ts';
import { scaled } from '../kit/scale.ts';
import type { TestService } from '../kit/service.ts';
import { AUTH, invite, sessionHeaders } from '../kit/sign-in.ts';

const ROUNDS = scaled(2, 5);
const NAME = 'vault.example';
const ORIGIN = `https://${NAME}`;
const PROXIED = { 'x-forwarded-proto': 'https', 'x-forwarded-host': NAME };

const provider = await startProvider({ after });
provider.allow(`${ORIGIN}/console/callback`);
const cluster = await startNodes({ after }, { nodes: 0 });
const flags = [`--public-name=${NAME}`, '--trusted-proxy=127.0.0.1', ...provider.flags];
const nodes = [await cluster.start(undefined, flags), await cluster.start(undefined, flags)] as const;
const [one, two] = nodes;
/** What the proxy sends to a node. */
const sendTo =
  ({ address }: TestService) =>
  (path: string, body: unknown): Promise<TestResponse> =>
    createClient(address, null).call('POST', `${AUTH}/${path}`, body, PROXIED);
const [toOne, toTwo] = [sendTo(one), sendTo(two)];

async function assertOpen(opened: TestResponse, name: string): Promise<void> {
  assert.equal(opened.status, 200, opened.text);
  const headers = { ...PROXIED, 'sec-fetch-site': 'same-origin', ...sessionHeaders(opened) };
  for (const { address } of nodes) {
    const { body } = await createClient(address, null).call('GET', `${AUTH}/session`, undefined, headers);
    assert.equal(body.data.agent_name, `operator:${name}`);
  }
}

/** Returns the successful one of two concurrent attempts with the same proof, one on each node. */
async function assertOneOpens(attempts: readonly Promise<TestResponse>[]): Promise<TestResponse> {
  const answers = await Promise.all(attempts);
  const [opened, ...others] = answers.toSorted((a, b) => a.status - b.status);
  assert.ok(opened);
  for (const other of others) assertRejected(other, 'AUTH_FAILED');
  return opened;
}

test('a passkey is registered with a code of one node on the other, and signs in across both, once', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const [name, authenticator] = [`passkey-${round}`, new Authenticator()];
    const code = await invite(one, name);
    const begun = (await toTwo('passkey/register-options', { code })).body.data;
    const response = authenticator.register(begun.options, { origin: ORIGIN });
    const registration = { challenge_id: begun.challenge_id, response, label: 'laptop', code };
    assert.equal((await toOne('passkey/register', registration)).status, 201);
    assertRejected(await toTwo('passkey/register', registration), 'AUTH_FAILED');

    const { challenge_id, options } = (await toOne('passkey/options', {})).body.data;
    const proof = { challenge_id, response: authenticator.signIn(options, { origin: ORIGIN }) };
    const opened = await assertOneOpens([toOne('passkey/verify', proof), toTwo('passkey/verify', proof)]);
    await assertOpen(opened, name);
    for (const verify of [toOne, toTwo]) assertRejected(await verify('passkey/verify', proof), 'AUTH_FAILED');
  }
});

test('a passkey that one node removes does not sign in on the other', async () => {
  const authenticator = new Authenticator();
  const code = await invite(one, 'removed');
  const begun = (await toOne('passkey/register-options', { code })).body.data;
  const response = authenticator.register(begun.options, { origin: ORIGIN });
  await toOne('passkey/register', { challenge_id: begun.challenge_id, response, label: 'laptop', code });
  const { challenge_id, options } = (await toTwo('passkey/options', {})).body.data;
  const proof = { challenge_id, response: authenticator.signIn(options, { origin: ORIGIN }) };
  const removed = await one.admin.delete(`/api/v1/operators/removed/passkeys/${authenticator.id}`);
  assert.equal(removed.status, 204, removed.text);
  assertRejected(await toTwo('passkey/verify', proof), 'AUTH_FAILED');
});

test('a sign-in at the identity provider begins on one node and ends on the other, once', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const [name, subject] = [`identity-${round}`, `sub-${round}`];
    await two.admin.post('/api/v1/operators', { name, roles: ['viewer'], identity: { subject } });
    const { url } = (await toOne('oidc/options', {})).body.data;
    const returned = await provider.visit(url, { subject });
    await assertOpen(await toTwo('oidc/verify', returned), name);
    for (const verify of [toOne, toTwo]) assertRejected(await verify('oidc/verify', returned), 'AUTH_FAILED');
  }
});

test('a one-time code of one node hands the session over on the other, once', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const name = `handed-${round}`;
    const operator = await addOperator(two, name, ['viewer']);
    const { code } = (await operator.post(`${AUTH}/handoff`)).body.data;
    const opened = await assertOneOpens([toOne('handoff/redeem', { code }), toTwo('handoff/redeem', { code })]);
    await assertOpen(opened, name);
  }
});
