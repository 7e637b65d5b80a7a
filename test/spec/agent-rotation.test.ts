// The key of an agent is replaced: the previous one is valid for the grace time, and sessions stay.

import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { createClient, readAgentKey, verifyAs } from '../kit/client.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { admin, address, dataDir } = service;
const rotate = (name: string, body: object) => admin.post(`/api/v1/agents/${name}/rotate`, body);
const newPair = () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { privateKey, text: publicKey.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64') };
};

test('both keys are valid for the grace time, and a session of the previous one stays', async () => {
  const { token } = await service.agent('graceful');
  const previous = readAgentKey(dataDir, 'graceful');
  const { privateKey, text } = newPair();
  const { body } = await rotate('graceful', { public_key: text, grace_seconds: 60 });
  assert.equal(body.data.public_key, text);
  assert.equal((await verifyAs(address, 'graceful', privateKey)).status, 200);
  assert.equal((await verifyAs(address, 'graceful', previous)).status, 200);
  // A repeat keeps the previous key and its time.
  assert.deepEqual((await rotate('graceful', { public_key: text, grace_seconds: 60 })).body, body);
  await clock.move(600_000);
  const late = await verifyAs(address, 'graceful', previous);
  assert.equal(late.status, 401, late.text);
  assert.equal((await verifyAs(address, 'graceful', privateKey)).status, 200);
  assert.equal((await createClient(address, token).get('/auth/session')).status, 200);
});

test('without a grace time the previous key ends with the response', async () => {
  await service.agent('abrupt');
  const previous = readAgentKey(dataDir, 'abrupt');
  const { privateKey, text } = newPair();
  assert.equal((await rotate('abrupt', { public_key: text, grace_seconds: 0 })).status, 200);
  assert.equal((await verifyAs(address, 'abrupt', previous)).status, 401);
  assert.equal((await verifyAs(address, 'abrupt', privateKey)).status, 200);
});

test('a repeat can shorten the grace time, and the entry says how long the previous key is valid', async () => {
  await service.agent('shortened');
  const previous = readAgentKey(dataDir, 'shortened');
  const { text } = newPair();
  const reasonOf = async (grace: number): Promise<string> => {
    assert.equal((await rotate('shortened', { public_key: text, grace_seconds: grace })).status, 200);
    const [entry] = (await admin.get('/api/v1/audit?event_type=agent.rotate&limit=1')).body.data;
    return entry.reason;
  };
  const startedAt = performance.now();
  assert.match(await reasonOf(60), / 60 seconds$/);
  const left = Number(/ (\d+) seconds$/.exec(await reasonOf(600))?.[1]);
  const passed = Math.ceil((performance.now() - startedAt) / 1000);
  assert.ok(left <= 60 && left >= 60 - passed, `${left} seconds, after ${passed}`);
  assert.match(await reasonOf(0), / 0 seconds$/);
  assert.equal((await verifyAs(address, 'shortened', previous)).status, 401);
});

test('a key that the server makes replaces its file, and nothing else is left', async () => {
  await service.agent('served');
  const previous = readAgentKey(dataDir, 'served');
  const { body } = await rotate('served', {});
  const next = readAgentKey(dataDir, 'served');
  assert.notEqual(next.export({ format: 'jwk' }).x, previous.export({ format: 'jwk' }).x);
  assert.equal(
    Buffer.from(next.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64'),
    body.data.public_key,
  );
  for (const key of [next, previous]) assert.equal((await verifyAs(address, 'served', key)).status, 200);
  assert.deepEqual(readdirSync(join(dataDir, 'agents', '.pending')), []);
  const [entry] = (await admin.get('/api/v1/audit?event_type=agent.rotate&limit=1')).body.data;
  assert.deepEqual([entry.resource, entry.result, entry.agent_name], ['agent:served', 'allowed', 'admin']);
});

test('an unknown agent is 404, and no file is left', async () => {
  assert.equal((await rotate('nobody', {})).status, 404);
  assert.deepEqual(readdirSync(join(dataDir, 'agents', '.pending')), []);
});
