// Failed logins are throttled. SOURCE: docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { type RequestOptions, request } from 'node:http';
import { test } from 'node:test';
import { logIn, readAgentKey, type TestResponse, verifyAs } from '../kit/client.ts';
import { assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const INVENTED = { challenge_id: '0190a000-0000-8000-8000-000000000000', signature: 'AAAA' };

/** An issued challenge with a signature by another key. */
async function wrongProof({ anonymous }: TestService, agent_name: string) {
  const { body } = await anonymous.post('/auth/challenge', { agent_name });
  return { challenge_id: body.data.challenge_id, signature: 'AAAA', agent_name };
}

/** Fails `count` verifies of the agent, several concurrently; returns the responses. */
async function fail(service: TestService, agent_name: string, count: number): Promise<TestResponse[]> {
  const { anonymous } = service;
  const proof = await wrongProof(service, agent_name);
  const answers: TestResponse[] = [];
  while (answers.length < count) {
    const batch = Array.from({ length: Math.min(20, count - answers.length) }, () =>
      anonymous.post('/auth/verify', proof),
    );
    answers.push(...(await Promise.all(batch)));
  }
  return answers;
}

/** Far more than a slow machine gets before the limit. */
const MANY_TRIES = 1000;

/** Fails verifies until one is over the limit: a slow machine gets more of them in the time. Returns the responses. */
async function failUntilLimited(service: TestService, agent_name: string): Promise<TestResponse[]> {
  const answers: TestResponse[] = [];
  while (countOf(answers, 429) === 0 && answers.length < MANY_TRIES)
    answers.push(...(await fail(service, agent_name, 20)));
  return answers;
}

const countOf = (answers: readonly TestResponse[], status: number) =>
  answers.filter((answer) => answer.status === status).length;

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

test('failed verifies of one agent from one address are 429 with Retry-After after a burst of 60', async (t) => {
  const service = await startTestService(t);
  await service.agent('guessed');
  const startedAt = performance.now();
  const answers = await failUntilLimited(service, 'guessed');
  const seconds = Math.ceil((performance.now() - startedAt) / 1000);
  const failed = countOf(answers, 401);
  assert.equal(failed >= 60 && failed <= 60 + seconds, true, `${failed} were checked in ${seconds} s`);
  assert.equal(countOf(answers, 429), answers.length - failed);
  for (const answer of answers) assertRejected(answer, answer.status === 429 ? 'RATE_LIMITED' : 'AUTH_FAILED');
  assert.equal(answers.find(({ status }) => status === 429)?.headers.get('retry-after'), '1');
});

test('over the limit a valid signature is 429 too, unchecked and unrecorded, and succeeds a second later', async (t) => {
  const service = await startTestService(t);
  await service.agent('waiting');
  const key = readAgentKey(service.dataDir, 'waiting');
  await fail(service, 'waiting', 80);
  const entries = await auditEntriesOf(service, async () => {
    const answer = await verifyAs(service.address, 'waiting', key);
    // On a slow machine the second may have passed already.
    if (answer.status !== 200) assertRejected(answer, 'RATE_LIMITED');
  });
  const refused = entries.filter(({ result }) => result === 'denied');
  assert.deepEqual(refused, []);
  await new Promise((resolve) => setTimeout(resolve, 1100));
  assert.match(await logIn(service.address, 'waiting', key), /^lhs_/);
});

test('the limit of one agent does not affect another agent', async (t) => {
  const service = await startTestService(t);
  await service.agent('attacked');
  await service.agent('bystander');
  await failUntilLimited(service, 'attacked');
  assert.match(await logIn(service.address, 'bystander', readAgentKey(service.dataDir, 'bystander')), /^lhs_/);
});

test('the limit is per address: failures from one address do not lock an agent out at another', async (t) => {
  const service = await startTestService(t);
  await service.agent('elsewhere');
  await failUntilLimited(service, 'elsewhere');
  const { body } = await service.anonymous.post('/auth/challenge', { agent_name: 'elsewhere' });
  const { challenge_id, nonce } = body.data;
  const key = readAgentKey(service.dataDir, 'elsewhere');
  const signature = sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
  const proof = { challenge_id, agent_name: 'elsewhere', signature };
  assert.equal(await verifyFrom('127.0.0.9', service, proof), 200);
});

test('one address may fail 300 times across all names, then ten times a second', async (t) => {
  const service = await startTestService(t);
  const startedAt = performance.now();
  const answers: TestResponse[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) answers.push(...(await fail(service, name, 50)));
  const refill = Math.ceil(((performance.now() - startedAt) / 1000) * 10);
  const failed = countOf(answers, 401);
  assert.equal(failed >= 300 && failed <= 300 + refill, true, `${failed} were checked`);
  assert.equal(failed + countOf(answers, 429), 350);
});

test('failures with challenge ids that were never issued are not counted for an agent', async (t) => {
  const service = await startTestService(t);
  await service.agent('undisturbed');
  const proof = { ...INVENTED, agent_name: 'undisturbed' };
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(Array.from({ length: 20 }, () => service.anonymous.post('/auth/verify', proof)));
    for (const answer of answers) assertRejected(answer, 'AUTH_FAILED');
  }
  const key = readAgentKey(service.dataDir, 'undisturbed');
  assert.match(await logIn(service.address, 'undisturbed', key), /^lhs_/);
});

test('names that differ in case share one limit', async (t) => {
  const service = await startTestService(t);
  await failUntilLimited(service, 'spelled');
  // From now on one is allowed each second: this many fail only if the limit is another one.
  const answers = await fail(service, 'SPELLED', 50);
  assert.equal(countOf(answers, 429) > 0, true);
});

test('challenges and successful logins do not count towards the limit', async (t) => {
  const service = await startTestService(t);
  await service.agent('busy');
  const key = readAgentKey(service.dataDir, 'busy');
  for (let n = 0; n < 70; n++) assert.equal((await verifyAs(service.address, 'busy', key)).status, 200);
  for (let n = 0; n < 100; n++) {
    assert.equal((await service.anonymous.post('/auth/challenge', { agent_name: 'busy' })).status, 200);
  }
  assert.equal(countOf(await fail(service, 'busy', 60), 401), 60);
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
