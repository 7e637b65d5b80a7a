// Challenges and logins. SOURCE: docs/api.md, "Logging in"; docs/decisions.md, "Agents and sessions".

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readAgentKey, type TestResponse } from '../kit/client.ts';
import { dumpCallerData, dumpDatabase } from '../kit/direct-db.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { assertRejected, auditEntriesOf, dataOf, TIMESTAMP, UUID } from '../kit/responses.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const CHALLENGE = 'challenge_id nonce expires_at';
const SESSION = 'session_id agent_name expires_at expires_in';

/** The store's clock may be read a moment later than this process's. */
const CLOCKS_DIFFER_MS = 1000;
const service = await startTestService({ after });
const { admin, anonymous, dataDir } = service;
const challenge = async (agent_name: string) =>
  dataOf(await anonymous.post('/auth/challenge', { agent_name }), 200, CHALLENGE);
const verify = (agent_name: string, challenge_id: string, signature: string) =>
  anonymous.post('/auth/verify', { challenge_id, agent_name, signature });
const signed = (key: KeyObject, nonce: string) => sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
/** Registers the agent and returns its key. */
const register = async (name: string): Promise<KeyObject> => {
  assert.equal((await admin.post('/api/v1/agents', { name })).status, 201);
  return readAgentKey(dataDir, name);
};

test('POST /auth/challenge returns 200 with challenge_id, a nonce of 32 bytes and expires_at in 60 seconds', async () => {
  await register('asked');
  // WHY not this process's clock: that of a vault on PostgreSQL is behind by the time that its reading took.
  const askedAt = Date.parse((await admin.get('/api/v1/audit?limit=1')).body.data[0].timestamp);
  const { challenge_id, nonce, expires_at } = await challenge('asked');
  assert.match(challenge_id, UUID);
  assert.equal(Buffer.from(nonce, 'base64').length, 32);
  assert.equal(Buffer.from(nonce, 'base64').toString('base64'), nonce);
  assert.match(expires_at, TIMESTAMP);
  const livesFor = Date.parse(expires_at) - askedAt;
  assert.ok(livesFor >= 60_000 && Date.parse(expires_at) <= Date.now() + 60_000 + CLOCKS_DIFFER_MS, `${livesFor} ms`);
});

test('POST /auth/verify returns 200 with session_id, agent_name and expires_at in one hour', async () => {
  const key = await register('answers');
  const { challenge_id, nonce } = await challenge('answers');
  const answeredAt = Date.now();
  const session = dataOf(await verify('answers', challenge_id, signed(key, nonce)), 200, SESSION);
  assert.equal(session.agent_name, 'answers');
  assert.match(session.session_id, /^lhs_[A-Za-z0-9_-]{43,}$/);
  const livesFor = Date.parse(session.expires_at) - answeredAt;
  const latest = Date.now() + 3_600_000 + CLOCKS_DIFFER_MS;
  assert.ok(livesFor >= 3_600_000 && Date.parse(session.expires_at) <= latest, `${livesFor} ms`);
  dataOf(await service.as(session.session_id).get('/auth/session'), 200, SESSION);
});

test('issuing a challenge stores nothing; only consumed ids are stored', async () => {
  const key = await register('costs-nothing');
  const rows = async () => Object.entries(await dumpCallerData(dataDir)).map(([table, { length }]) => [table, length]);
  const before = await rows();
  const { challenge_id, nonce } = await challenge('costs-nothing');
  for (let n = 0; n < 20; n++) await challenge(`nobody-${n}`);
  await verify('costs-nothing', randomUUID().replace(/^(.{14})./, '$18'), signed(key, nonce));
  assert.deepEqual(await rows(), before);
  const spent = async () =>
    (await dumpDatabase(dataDir))['spent_challenges']?.filter(({ id }) => id === challenge_id).length;
  assert.equal(await spent(), 0);
  await verify('costs-nothing', challenge_id, signed(key, nonce));
  assert.equal(await spent(), 1);
});

test('openssl pkeyutl -sign -rawin with the agent’s key file signs a nonce', async (t) => {
  await register('openssl');
  const { challenge_id, nonce } = await challenge('openssl');
  const directory = temporaryDirectory(t);
  writeFileSync(join(directory, 'nonce'), Buffer.from(nonce, 'base64'));
  const keyFile = join(dataDir, 'agents', 'openssl', 'private_key.pem');
  const signature = execFileSync('openssl', [
    'pkeyutl',
    '-sign',
    '-rawin',
    '-inkey',
    keyFile,
    '-in',
    join(directory, 'nonce'),
  ]);
  dataOf(await verify('openssl', challenge_id, signature.toString('base64')), 200, SESSION);
});

test('an unknown agent gets a challenge of the same shape, and the same 401 at verify as a known one', async () => {
  await register('known');
  const { privateKey } = generateKeyPairSync('ed25519');
  const seen = await Promise.all(
    ['known', 'unknown'].map(async (name) => {
      const issued = await anonymous.post('/auth/challenge', { agent_name: name });
      const { challenge_id, nonce, expires_at } = dataOf(issued, 200, CHALLENGE);
      const failed = await verify(name, challenge_id, signed(privateKey, nonce));
      assertRejected(failed, 'AUTH_FAILED');
      const shape = [challenge_id[14], challenge_id.length, nonce.length, expires_at.length, issued.text.length];
      return { shape, body: failed.body, headers: [...failed.headers.keys()] };
    }),
  );
  assert.deepEqual(seen[0], seen[1]);
});

test('/auth/* is also served under /api/v1/auth/*', async () => {
  const key = await register('aliased');
  const issued = await anonymous.post('/api/v1/auth/challenge', { agent_name: 'aliased' });
  const { challenge_id, nonce } = dataOf(issued, 200, CHALLENGE);
  const proof = { challenge_id, agent_name: 'aliased', signature: signed(key, nonce) };
  const { session_id } = dataOf(await anonymous.post('/api/v1/auth/verify', proof), 200, SESSION);
  const agent = service.as(session_id);
  const session = dataOf(await agent.get('/api/v1/auth/session'), 200, SESSION);
  assert.deepEqual(dataOf(await agent.get('/auth/session'), 200, SESSION), session);
  assert.equal((await agent.delete('/api/v1/auth/session')).status, 204);
  assertRejected(await agent.get('/auth/session'), 'UNAUTHENTICATED');
});

// Failed logins are throttled over HTTP; test/vault/login-throttle.test.ts tests the numbers.

/** An issued challenge with a signature by another key. */
async function wrongProof({ anonymous }: TestService, agent_name: string) {
  const { body } = await anonymous.post('/auth/challenge', { agent_name });
  return { challenge_id: body.data.challenge_id, signature: 'AAAA', agent_name };
}

test('failed logins from an address are recorded up to a limit, then 429 and unrecorded; X-Forwarded-For tells it only from a trusted proxy', async (t) => {
  const failMany = async (service: TestService): Promise<readonly TestResponse[]> => {
    const proof = await wrongProof(service, 'forwarded');
    return Promise.all(
      Array.from({ length: 64 }, (_, n) => {
        const headers = { 'x-forwarded-for': `192.0.2.${n}` };
        return service.anonymous.call('POST', '/auth/verify', proof, headers);
      }),
    );
  };
  const direct = await startTestService(t);
  await direct.agent('forwarded');
  let recorded: string[] = [];
  const entries = await auditEntriesOf(direct, async () => {
    const answers: TestResponse[] = [];
    const limited = () => answers.filter(({ status }) => status === 429);
    // A slow machine is allowed one more failure for each second that it takes.
    while (limited().length === 0) answers.push(...(await failMany(direct)));
    for (const answer of limited()) assertRejected(answer, 'RATE_LIMITED');
    const failed = answers.filter(({ status }) => status !== 429);
    for (const answer of failed) assertRejected(answer, 'AUTH_FAILED');
    recorded = failed.map(() => 'auth.verify denied');
  });
  assert.deepEqual(
    entries.map(({ event_type, result }) => `${event_type} ${result}`),
    recorded,
  );
  const behindProxy = await failMany(await startTestService(t, ['--trusted-proxy', '127.0.0.1']));
  assert.deepEqual([...new Set(behindProxy.map(({ status }) => status))], [401]);
});
