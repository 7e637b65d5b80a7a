// A backup while the service runs: one at a time, ended when its client leaves, and without traces in the directory.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { slotPrivateKey, slotPublicKey } from '../../src/crypto/key-slots.ts';
import { openDirectDb } from '../kit/direct-db.ts';
import type { Scope } from '../kit/directory.ts';
import { until } from '../kit/processes.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { KINDS, type Kind, newPlace, startAt } from './fixture.ts';

/** Enough for a client that reads nothing to block the stream. */
const VALUES = 160;
const VALUE = 'x'.repeat(200_000);

async function newestResult({ admin }: TestService) {
  const { body } = await admin.get('/api/v1/audit?event_type=service.backup_result&limit=1');
  return body.data[0];
}

/** A service with the values, whose requests in progress end soon when it stops. */
async function fill(scope: Scope, kind: Kind) {
  const place = await newPlace(scope, kind);
  const service = await startTestService(scope, place.flags, place.dataDir, undefined, { stopMs: 100 });
  const store = (n: number) => service.admin.post('/api/v1/credentials', { path: `a/${n}`, value: VALUE });
  await Promise.all(Array.from({ length: VALUES }, (_, n) => store(n)));
  return { place, service };
}

const shared = await fill({ after }, 'sqlite');

for (const kind of KINDS) {
  test(`on ${kind} another one is rejected, and one whose client left ends and is recorded`, async (t) => {
    const { place, service } = kind === 'sqlite' ? shared : await fill(t, kind);
    const leave = new AbortController();
    const begun = await fetch(`${service.address}/api/v1/backup`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.adminToken}` },
      signal: leave.signal,
    });
    assert.equal(begun.status, 200);
    const second = await service.admin.post('/api/v1/backup');
    assert.deepEqual([second.status, second.body.error.code], [503, 'UNAVAILABLE']);
    assert.match(second.body.error.message, /Another backup is being taken/);
    // The service keeps serving requests in the meantime.
    assert.equal((await service.admin.get('/api/v1/credentials/a/1')).status, 200);
    leave.abort();
    await until(
      async () => (await newestResult(service)) !== undefined,
      120_000,
      () => 'the end of the backup is not recorded',
    );
    const ended = await newestResult(service);
    assert.equal(ended.result, 'error');
    assert.match(ended.reason, /^incomplete, ended after \d+ bytes$/);
    assert.deepEqual(
      readdirSync(place.dataDir).filter((name) => name.includes('.new')),
      [],
    );
    const third = await service.admin.post('/api/v1/backup');
    assert.match(third.text, /\n\{"end":/);
    assert.equal((await newestResult(service)).result, 'allowed');
  });
}

test('a backup whose client takes nothing for two minutes ends, and another one is taken', async (t) => {
  const { service } = shared;
  const before = (await newestResult(service)).id;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const stalled = request(`${service.address}/api/v1/backup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.adminToken}` },
  }).end();
  t.after(() => stalled.destroy());
  const [response] = await once(stalled, 'response');
  assert.equal(response.statusCode, 200);
  assert.equal((await service.admin.post('/api/v1/backup')).status, 503);
  // At first the buffers of the connection still accept chunks, and each chunk restarts the time limit.
  for (let round = 0; round < 2400 && (await newestResult(service)).id === before; round++) {
    t.mock.timers.tick(121_000);
    await sleep(50);
  }
  t.mock.timers.reset();
  assert.match((await newestResult(service)).reason, /^incomplete, ended after \d+ bytes$/);
  assert.match((await service.admin.post('/api/v1/backup')).text, /\n\{"end":/);
});

test('a snapshot that cannot be taken is an error with its reason, and is recorded', async (t) => {
  const place = await newPlace(t, 'sqlite');
  const service = await startAt(t, place);
  const outside = await openDirectDb(place.dataDir);
  await outside.run('DELETE FROM vault');
  await outside.close();
  for (let round = 1; round <= 2; round++) {
    const { status, body } = await service.admin.post('/api/v1/backup');
    assert.equal(status, 503);
    assert.match(
      body.error.message,
      /^The backup could not be taken: the vault's record is missing from the database\.$/,
    );
    assert.equal((await newestResult(service)).reason, 'incomplete, ended after 0 bytes');
  }
  assert.deepEqual(
    readdirSync(place.dataDir).filter((name) => name.includes('.new')),
    [],
  );
});

test('a lock cuts a backup at whatever moment it comes, and every end is recorded', async (t) => {
  const service = await startAt(t, await newPlace(t, 'sqlite'));
  const secret = Buffer.alloc(32, 7);
  const parameters = { salt: Buffer.alloc(16).toString('base64'), memory_kib: 65_536, passes: 3, lanes: 1 };
  const publicKey = slotPublicKey(slotPrivateKey(secret));
  const slot = { name: 'words', kind: 'passphrase', public_key: publicKey, parameters };
  assert.equal((await service.admin.post('/api/v1/key/slots', slot)).status, 201);
  const given = { secret: secret.toString('base64') };
  for (const afterMs of [0, 5, 20, 80, 160, 300]) {
    // A stream that is cut rejects.
    const backup = service.admin.post('/api/v1/backup').then(
      ({ status }) => status,
      () => 200,
    );
    await sleep(afterMs);
    assert.equal((await service.admin.post('/api/v1/lock')).status, 200);
    const status = await backup;
    assert.ok([200, 503].includes(status), `${status} after ${afterMs} ms`);
    assert.equal((await service.anonymous.post('/api/v1/unlock', given)).status, 200);
  }
  const count = async (type: string) => (await service.admin.get(`/api/v1/audit?event_type=${type}`)).body.meta.total;
  assert.equal(await count('service.backup_result'), await count('service.backup'));
  assert.notEqual(await count('service.backup'), 0);
});

// The last one: the service has stopped afterwards.
test('a stop cuts a backup that its client does not read, and records its end before its own', async (t) => {
  const { place, service } = shared;
  const stalled = request(`${service.address}/api/v1/backup`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.adminToken}` },
  }).end();
  t.after(() => stalled.destroy());
  const [response] = await once(stalled, 'response');
  const cut = once(response, 'error');
  await service.stop();
  const again = await startAt(t, place);
  const newest: { event_type: string; result: string }[] = (await again.admin.get('/api/v1/audit?limit=4')).body.data;
  assert.deepEqual(
    newest.map(({ event_type, result }) => `${event_type} ${result}`),
    ['service.start allowed', 'service.stop allowed', 'service.backup_result error', 'service.backup allowed'],
  );
  assert.equal((await again.admin.get('/api/v1/audit/verify')).body.data.valid, true);
  response.resume();
  await cut;
});
