// Agents. SOURCE: docs/api.md, "Agents"; docs/decisions.md, "Names and paths" and "Agents and sessions".

import assert from 'node:assert/strict';
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { logIn, readAgentKey, verifyAs } from '../kit/client.ts';
import { assertInvalid, assertNoContent, assertRejected, auditEntriesOf, dataOf, TIMESTAMP } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const AGENTS = '/api/v1/agents';
const AGENT = 'name description public_key registered_at';

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

test('the service generates the key pair and stores the private key in the agent’s directory, as PKCS#8 PEM', async () => {
  const { public_key } = dataOf(await register('paired'), 201, 'name public_key registered_at');
  const file = join(keyDir('paired'), 'private_key.pem');
  const pem = readFileSync(file, 'utf8');
  assert.match(pem, /^-----BEGIN PRIVATE KEY-----\n/);
  const key = createPrivateKey(pem);
  assert.equal(key.asymmetricKeyType, 'ed25519');
  assert.equal(rawPublicKey(createPublicKey(key)), public_key);
  assert.deepEqual([statSync(file).mode & 0o777, statSync(keyDir('paired')).mode & 0o777], [0o600, 0o700]);
});

test('each agent gets its own key pair', async () => {
  const one = dataOf(await register('own-1'), 201, 'name public_key registered_at');
  const two = dataOf(await register('own-2'), 201, 'name public_key registered_at');
  assert.notEqual(one.public_key, two.public_key);
});

test('GET /agents returns name, description, public_key and registered_at of every agent', async () => {
  const { registered_at, public_key } = (await register('listed', { description: 'the listed one' })).body.data;
  const listed = dataOf(await admin.get(AGENTS), 200, AGENT);
  assert.deepEqual(
    listed.filter(({ name }: { name: string }) => name === 'listed'),
    [{ name: 'listed', description: 'the listed one', public_key, registered_at }],
  );
});

test('GET /agents/:name returns one agent, and 404 for an unknown name', async () => {
  await register('read');
  const listed = dataOf(await admin.get(AGENTS), 200, AGENT);
  const read = dataOf(await admin.get(`${AGENTS}/read`), 200, AGENT);
  assert.deepEqual(
    read,
    listed.find(({ name }: { name: string }) => name === 'read'),
  );
  assert.equal(read.description, '');
  for (const name of ['unread', 'Read']) assertRejected(await admin.get(`${AGENTS}/${name}`), 'NOT_FOUND');
});

test('name is required, and description has up to 1,024 characters, none of them U+0000', async () => {
  assertInvalid(await admin.post(AGENTS, { description: 'nameless' }), 'name');
  assert.equal((await register('wordy', { description: 'd'.repeat(1024) })).status, 201);
  assertInvalid(await register('too-wordy', { description: 'd'.repeat(1025) }), 'description');
  assertInvalid(await register('zero', { description: 'd\u0000' }), 'description');
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

test('public_key must be the canonical base64 of 32 raw bytes', async () => {
  const { publicKey } = generateKeyPairSync('ed25519');
  const good = rawPublicKey(publicKey);
  const bytes = Buffer.from(good, 'base64');
  const bad = [
    '',
    good.slice(0, -1),
    ` ${good}`,
    `${good}\n`,
    `${good}=`,
    bytes.subarray(1).toString('base64'),
    Buffer.concat([bytes, bytes]).toString('base64'),
    bytes.toString('hex'),
    publicKey.export({ type: 'spki', format: 'der' }).toString('base64'),
    // 32 bytes leave two bits unused in the last letter: the next one decodes to the same bytes.
    `${good.slice(0, -2)}${String.fromCharCode(good.charCodeAt(good.length - 2) + 1)}=`,
  ];
  for (const public_key of bad) assertInvalid(await register('bad-key', { public_key }), 'public_key');
  assertInvalid(await register('bad-key', { public_key: null }), 'public_key');
  assertRejected(await admin.get(`${AGENTS}/bad-key`), 'NOT_FOUND');
});

// SOURCE: the eight points of small order and their non-canonical encodings (eprint 2020/1244, table 3).
const SMALL_ORDER = [
  `01${'00'.repeat(31)}`,
  `ec${'ff'.repeat(30)}7f`,
  `${'00'.repeat(32)}`,
  `${'00'.repeat(31)}80`,
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05',
  '26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a',
  'c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa',
  `01${'00'.repeat(30)}80`,
  `ec${'ff'.repeat(31)}`,
  `ed${'ff'.repeat(30)}7f`,
  `ed${'ff'.repeat(31)}`,
  `ee${'ff'.repeat(30)}7f`,
  `ee${'ff'.repeat(31)}`,
];

const OFF_THE_CURVE = [`02${'00'.repeat(31)}`, '07'.repeat(32)];

test('small-order points and encodings that are not on the curve are rejected as public keys', async () => {
  for (const point of [...SMALL_ORDER, ...OFF_THE_CURVE]) {
    const public_key = Buffer.from(point, 'hex').toString('base64');
    assertInvalid(await register('small-order', { public_key }), 'public_key');
  }
});

test('DELETE /agents/:name returns 204 and removes agents/<name>; an unknown name is 404', async () => {
  await register('deleted');
  assert.equal(existsSync(keyDir('deleted')), true);
  assertNoContent(await admin.delete(`${AGENTS}/deleted`));
  assert.equal(existsSync(keyDir('deleted')), false);
  for (const name of ['deleted', 'never-there']) assertRejected(await admin.delete(`${AGENTS}/${name}`), 'NOT_FOUND');
});

test('deregistering an agent revokes all its active leases and ends its sessions', async () => {
  for (const path of ['leased/a', 'leased/b']) await admin.post('/api/v1/credentials', { path, value: 'v' });
  const agent = await service.agent('leaving', { 'leased/*': ['retrieve'] });
  const other = await service.agent('staying', { 'leased/*': ['retrieve'] });
  for (const path of ['leased/a', 'leased/b']) await agent.get(`/api/v1/credentials/${path}`);
  const kept = (await other.get('/api/v1/credentials/leased/a')).body.data.lease_id;
  await admin.delete(`${AGENTS}/leaving`);
  const { data } = (await admin.get('/api/v1/leases?agent=leaving')).body;
  assert.deepEqual(
    data.map(({ status }: { status: string }) => status),
    ['revoked', 'revoked'],
  );
  assert.equal((await admin.get(`/api/v1/leases/${kept}`)).body.data.status, 'active');
  assertRejected(await agent.get('/api/v1/credentials/leased/a'), 'UNAUTHENTICATED');
});

test('policies refer to agents by name: they survive deregistration and apply to a new agent of that name', async () => {
  await admin.post('/api/v1/credentials', { path: 'back/key', value: 'v' });
  await service.agent('back', { 'back/*': ['retrieve'] });
  await admin.delete(`${AGENTS}/back`);
  assert.equal((await admin.get('/api/v1/policies/back-0')).status, 200);
  const again = await service.agent('back');
  assert.equal((await again.get('/api/v1/credentials/back/key')).status, 200);
});

test('an agent registered under an old name inherits no session, lease or challenge', async () => {
  await admin.post('/api/v1/credentials', { path: 'heir/key', value: 'v' });
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const public_key = rawPublicKey(publicKey);
  const old = await service.agent('heir', { 'heir/*': ['retrieve'] });
  const { lease_id } = (await old.get('/api/v1/credentials/heir/key')).body.data;
  await admin.delete(`${AGENTS}/heir`);
  await register('heir', { public_key });
  const token = await logIn(address, 'heir', privateKey);
  assertRejected(await old.get('/auth/session'), 'UNAUTHENTICATED');
  assertRejected(await service.as(token).get(`/api/v1/leases/${lease_id}`), 'NOT_FOUND');
  assert.deepEqual((await service.as(token).get('/api/v1/leases')).body.data, []);
  assert.equal((await admin.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'revoked');
});

test('the private key of a deregistered agent does not log in the new agent of that name', async () => {
  await register('rekeyed');
  const oldKey = readAgentKey(dataDir, 'rekeyed');
  await admin.delete(`${AGENTS}/rekeyed`);
  await register('rekeyed');
  assertRejected(await verifyAs(address, 'rekeyed', oldKey), 'AUTH_FAILED');
  assert.equal((await verifyAs(address, 'rekeyed', readAgentKey(dataDir, 'rekeyed'))).status, 200);
});

test('a rejected registration leaves no key file', async () => {
  const before = readdirSync(join(dataDir, 'agents')).sort();
  const agent = await service.agent('no-registrar');
  const entries = await auditEntriesOf(service, async () => {
    assertRejected(await agent.post(AGENTS, { name: 'smuggled' }), 'ACCESS_DENIED');
  });
  assert.equal(entries.length, 1);
  assert.deepEqual(readdirSync(join(dataDir, 'agents')).sort(), [...before, 'no-registrar'].sort());
});
