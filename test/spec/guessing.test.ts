// Failed logins are throttled over HTTP; test/vault/login-throttle.test.ts has the numbers.
// SOURCE: docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { type RequestOptions, request } from 'node:http';
import { test } from 'node:test';
import { logIn, readAgentKey, type TestResponse } from '../kit/client.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const INVENTED = { challenge_id: '0190a000-0000-8000-8000-000000000000', signature: 'AAAA' };

/** An issued challenge with a signature by another key. */
async function wrongProof({ anonymous }: TestService, agent_name: string) {
  const { body } = await anonymous.post('/auth/challenge', { agent_name });
  return { challenge_id: body.data.challenge_id, signature: 'AAAA', agent_name };
}

/** Far more than a slow machine gets before the limit. */
const MANY_TRIES = 1000;

/** Fails verifies until one is over the limit: a slow machine gets more of them in the time. Returns that response. */
async function failUntilLimited(service: TestService, agent_name: string): Promise<TestResponse> {
  const proof = await wrongProof(service, agent_name);
  for (let tries = 0; tries < MANY_TRIES; tries += 20) {
    const batch = Array.from({ length: 20 }, () => service.anonymous.post('/auth/verify', proof));
    const answers = await Promise.all(batch);
    const limited = answers.find(({ status }) => status === 429);
    if (limited !== undefined) return limited;
    for (const answer of answers) assertRejected(answer, 'AUTH_FAILED');
  }
  return assert.fail('no attempt was over the limit');
}

/** A verify over a connection from another loopback address. */
function verifyFrom(localAddress: string, { address }: TestService, body: unknown): Promise<number> {
  const options: RequestOptions = { method: 'POST', localAddress, headers: { 'content-type': 'application/json' } };
  return new Promise((resolve, reject) => {
    const sent = request(`${address}/auth/verify`, options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0));
    });
    sent.on('error', reject).end(JSON.stringify(body));
  });
}

test('failed logins of an agent from an address are 429 with Retry-After, and others can log in', async (t) => {
  const service = await startTestService(t);
  for (const name of ['attacked', 'bystander']) await service.agent(name);
  const answer = await failUntilLimited(service, 'attacked');
  assertRejected(answer, 'RATE_LIMITED');
  assert.equal(answer.headers.get('retry-after'), '1');
  assert.match(await logIn(service.address, 'bystander', readAgentKey(service.dataDir, 'bystander')), /^lhs_/);
  const { challenge_id, nonce } = (await service.anonymous.post('/auth/challenge', { agent_name: 'attacked' })).body
    .data;
  const key = readAgentKey(service.dataDir, 'attacked');
  const signature = sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
  assert.equal(await verifyFrom('127.0.0.9', service, { challenge_id, agent_name: 'attacked', signature }), 200);
});

test('failures with challenge ids that were never issued are not counted for an agent', async (t) => {
  const service = await startTestService(t);
  await service.agent('undisturbed');
  const proof = { ...INVENTED, agent_name: 'undisturbed' };
  for (let round = 0; round < 4; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.anonymous.post('/auth/verify', proof)));
    for (const answer of answers) assertRejected(answer, 'AUTH_FAILED');
  }
  const key = readAgentKey(service.dataDir, 'undisturbed');
  assert.match(await logIn(service.address, 'undisturbed', key), /^lhs_/);
});

test('X-Forwarded-For is used only from a configured trusted proxy', async (t) => {
  const statusesOf = async (service: TestService) => {
    const proof = await wrongProof(service, 'forwarded');
    const answers = await Promise.all(
      Array.from({ length: 90 }, (_, n) => {
        const headers = { 'x-forwarded-for': `192.0.2.${n}` };
        return service.anonymous.call('POST', '/auth/verify', proof, headers);
      }),
    );
    return [...new Set(answers.map(({ status }) => status))].sort();
  };
  assert.deepEqual(await statusesOf(await startTestService(t)), [401, 429]);
  assert.deepEqual(await statusesOf(await startTestService(t, ['--trusted-proxy', '127.0.0.1'])), [401]);
});
