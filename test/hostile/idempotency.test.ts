// Hostile use of idempotency keys: stored records reveal nothing, and callers never reach each other's records.
// SOURCE: SECURITY.md, P4, P5, P9.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { after, test } from 'node:test';
import type { Client } from '../kit/client.ts';
import { findBytes, selectRows } from '../kit/direct-db.ts';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertInvalid, assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';
const service = await startTestService({ after });
const { admin } = service;
const one = await service.agent('one', { 'one/*': ['store', 'retrieve'], 'shared/*': ['store'] });
const two = await service.agent('two', { 'two/*': ['store'], 'shared/*': ['store'] });

const newMark = () => `mk${randomBytes(8).toString('hex')}`;
const store = (as: Client, key: string, path: string, value: string) =>
  as.call('POST', CREDENTIALS, { path, value }, { 'idempotency-key': key });
const found = (bytes: string | Uint8Array) => findBytes(service.dataDir, bytes);

test('no file holds the key, value or body of a repeatable request, or an unkeyed hash of one', async () => {
  const [key, value] = [newMark(), newMark()];
  const path = 'one/kept';
  for (let i = 0; i < 2; i++) assert.equal((await store(one, key, path, value)).status, 201);
  assertInvalid(await store(one, key, path, `${value}2`), 'Idempotency-Key');
  const pairs = JSON.stringify([
    ['path', path],
    ['value', value],
  ]);
  const body = JSON.stringify({ path, value });
  for (const text of [key, value, body, pairs, `one${key}`, JSON.stringify(['one', key])]) {
    const hash = createHash('sha256').update(text).digest();
    const shapes = [text, hash, hash.toString('hex'), hash.toString('base64'), hash.toString('base64url')];
    for (const shape of shapes) assert.deepEqual(await found(shape), [], text);
  }
  assert.notDeepEqual(await found(path), [], 'the search finds what is there');
  const log = (await admin.get('/api/v1/audit/export')).text;
  assert.equal(log.includes(key) || log.includes(value), false);
});

test('no response contains the idempotency key, valid or not', async () => {
  const mark = newMark();
  await store(one, mark, 'one/echo', 'v');
  const body = JSON.stringify({ path: 'one/echo', value: 'w' });
  const ask = (...lines: string[]) => {
    const head = [`POST ${CREDENTIALS} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${one.token}`];
    const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    return sendRaw(service.address, rawRequest([...head, ...type, ...lines], body));
  };
  for (const lines of [
    [`Idempotency-Key: ${mark}`],
    [`Idempotency-Key: ${mark} ${mark}`],
    [`Idempotency-Key: ${mark.repeat(20)}`],
    [`Idempotency-Key: ${mark}`, `Idempotency-Key: ${mark}`],
    [`Idempotency-Key: ${mark}`, `Idempotency-Key: other-${mark}`],
    [`Idempotency-Key: ${mark}\u00e9`],
  ]) {
    const answer = await ask(...lines);
    assert.equal(answer.status, 400, lines.join());
    assert.equal((answer.head + answer.body).includes(mark), false, lines.join());
  }
  assert.deepEqual(await found(mark), []);
});

test('a key that another caller used behaves exactly like an unused one', async () => {
  const used = newMark();
  for (const caller of [one, admin]) assert.equal((await store(caller, used, 'shared/a', 'theirs')).status, 201);
  const shapes = await Promise.all(
    [used, newMark()].map(async (key) => {
      const same = await store(two, key, 'shared/a', 'theirs');
      const other = await store(two, key, 'shared/a', 'another');
      const denied = await store(two, newMark() + key, 'one/kept', 'v');
      return [same, other, denied].map(({ status, text, headers }) => [
        status,
        text.replaceAll(/\d{4}-\S+Z/g, 'time'),
        [...headers.keys()].sort(),
      ]);
    }),
  );
  assert.deepEqual(shapes[0], shapes[1]);
});

test('record ids differ per caller, so that a lookup never reads another caller’s record', async () => {
  const key = newMark();
  const idsOf = async () => {
    const rows = await selectRows(service.dataDir, 'SELECT id, agent_id FROM idempotency_records');
    return rows.map(({ id, agent_id }) => ({ id: String(id), agentId: String(agent_id) }));
  };
  const before = new Set((await idsOf()).map(({ id }) => id));
  for (const caller of [admin, one, two]) await store(caller, key, 'shared/b', 'v');
  const added = (await idsOf()).filter(({ id }) => !before.has(id));
  assert.deepEqual([added.length, new Set(added.map(({ agentId }) => agentId)).size], [3, 3]);
});

test('only successes are stored: rejections of every kind leave no record', async () => {
  const count = async () => (await selectRows(service.dataDir, 'SELECT id FROM idempotency_records')).length;
  const before = await count();
  await Promise.all(
    Array.from({ length: 50 }, async () => {
      assertRejected(await store(two, newMark(), 'one/denied', 'v'), 'ACCESS_DENIED');
      assertRejected(await store(service.anonymous, newMark(), 'one/denied', 'v'), 'UNAUTHENTICATED');
      assertInvalid(await store(two, newMark(), '../denied', 'v'), 'path');
    }),
  );
  assert.equal(await count(), before);
});

test('a repeat does not restore anything that was revoked or deleted since', async () => {
  const [storeKey, renewKey] = [newMark(), newMark()];
  const first = await store(one, storeKey, 'one/right', 'v');
  const { lease_id } = (await one.get(`${CREDENTIALS}/one/right`)).body.data;
  const renew = () => one.call('POST', `/api/v1/leases/${lease_id}/renew`, undefined, { 'idempotency-key': renewKey });
  const renewed = await renew();
  assert.equal(renewed.status, 200);
  await admin.delete(`/api/v1/leases/${lease_id}`);
  await admin.delete('/api/v1/policies/one-0');
  await admin.delete(`${CREDENTIALS}/one/right`);
  // The stored response is returned, and nothing is executed.
  assert.equal((await renew()).text, renewed.text);
  assert.equal((await store(one, storeKey, 'one/right', 'v')).text, first.text);
  assert.equal((await admin.get(`/api/v1/leases/${lease_id}`)).body.data.status, 'revoked');
  assertRejected(await admin.get(`${CREDENTIALS}/one/right`), 'NOT_FOUND');
  assertRejected(await one.get(`${CREDENTIALS}/one/right`), 'ACCESS_DENIED');
  assertRejected(await store(one, newMark(), 'one/right', 'v'), 'ACCESS_DENIED');
});
