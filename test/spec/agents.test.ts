// Agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Names and paths" and "Agents and sessions".

import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import { assertNoContent, assertRejected, dataOf, TIMESTAMP } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const AGENTS = '/api/v1/agents';

const service = await startTestService({ after });
const { admin, address, dataDir } = service;
const register = (name: string, more: Record<string, unknown> = {}) => admin.post(AGENTS, { name, ...more });
const keyDir = (name: string) => join(dataDir, 'agents', name);
const rawPublicKey = (key: KeyObject) =>
  Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');

test('POST /agents returns 201 with name, public_key and registered_at, and never a private key', async () => {
  const answer = await register('posted', { description: 'builds the site' });
  const data = dataOf(answer, 201, 'name public_key registered_at');
  assert.equal(data.name, 'posted');
  assert.equal(Buffer.from(data.public_key, 'base64').length, 32);
  assert.match(data.registered_at, TIMESTAMP);
  const pem = readFileSync(join(keyDir('posted'), 'private_key.pem'), 'utf8');
  assert.equal(answer.text.includes(pem.split('\n')[1] ?? pem), false);
});

test('the server generates the key pair and stores the private key in the agent’s directory, as PKCS#8 PEM', async () => {
  const { public_key } = dataOf(await register('paired'), 201, 'name public_key registered_at');
  const file = join(keyDir('paired'), 'private_key.pem');
  const pem = readFileSync(file, 'utf8');
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----\n/);
  const key = createPrivateKey(pem);
  assert.equal(key.asymmetricKeyType, 'ed25519');
  assert.equal(rawPublicKey(createPublicKey(key)), public_key);
  assert.deepEqual([statSync(file).mode & 0o777, statSync(keyDir('paired')).mode & 0o777], [0o600, 0o700]);
});

test('registering a name that exists, in any case, is 409 and changes nothing', async () => {
  const before = (await register('Taken')).body.data;
  const pem = readFileSync(join(keyDir('Taken'), 'private_key.pem'));
  for (const name of ['Taken', 'taken', 'TAKEN']) assertRejected(await register(name), 'ALREADY_EXISTS');
  assert.equal((await admin.get(`${AGENTS}/Taken`)).body.data.public_key, before.public_key);
  assert.deepEqual(readFileSync(join(keyDir('Taken'), 'private_key.pem')), pem);
  assert.equal(existsSync(keyDir('TAKEN')), false);
});

test('of concurrent registrations of one name one is 201, the others 409, and the stored key belongs to the 201', async () => {
  const answers = await Promise.all([register('race'), register('RACE'), register('race')]);
  const statuses = answers.map(({ status }) => status).sort();
  assert.deepEqual(statuses, [201, 409, 409]);
  const won = answers.find(({ status }) => status === 201)?.body.data;
  assert.equal(rawPublicKey(createPublicKey(readAgentKey(dataDir, won.name))), won.public_key);
  assert.deepEqual(readdirSync(join(dataDir, 'agents', '.pending')), []);
});

test('with public_key the agent keeps its own key: none is made, and it logs in', async () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const public_key = rawPublicKey(publicKey);
  const data = dataOf(await register('own-key', { public_key }), 201, 'name public_key registered_at');
  assert.equal(data.public_key, public_key);
  assert.equal(existsSync(keyDir('own-key')), false);
  assert.match(await logIn(address, 'own-key', privateKey), /^lhs_/);
});

test('DELETE /agents/:name returns 204 and removes agents/<name>; an unknown name is 404', async () => {
  await register('deleted');
  assert.equal(existsSync(keyDir('deleted')), true);
  assertNoContent(await admin.delete(`${AGENTS}/deleted`));
  assert.equal(existsSync(keyDir('deleted')), false);
  for (const name of ['deleted', 'never-there']) assertRejected(await admin.delete(`${AGENTS}/${name}`), 'NOT_FOUND');
});
