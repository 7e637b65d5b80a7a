// Requests that are sent ahead on one connection: some are served in order; a flood of them is cut off, and asks for nobody's time.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sendRaw } from '../kit/raw.ts';
import { startScene } from './fixture.ts';

const scene = await startScene({ after });
const { address } = scene.service;

/** One answer is under way while so many wait behind it. */
const SERVED_AHEAD = 9;

function retrievals(count: number): Buffer {
  const head = `GET /api/v1/credentials/open/stored HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${scene.agent.token}`;
  return Buffer.from(`${head}\r\n\r\n`.repeat(count));
}

/** The look itself is not recorded. */
async function entryCount(): Promise<number> {
  return (await scene.service.admin.get('/api/v1/audit?limit=1')).body.meta.total;
}

async function statusesOf(bytes: Buffer): Promise<{ statuses: string[]; isClosed: boolean }> {
  const { head, body, isClosed } = await sendRaw(address, bytes, 1000);
  const statuses = [...`${head}\r\n\r\n${body}`.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? '');
  return { statuses, isClosed };
}

test('nine requests that come at once on a connection are answered, each', async () => {
  const { statuses, isClosed } = await statusesOf(retrievals(SERVED_AHEAD));
  assert.deepEqual(statuses, Array<string>(SERVED_AHEAD).fill('200'));
  assert.equal(isClosed, false, 'the connection stays');
});

test('a connection with more than that is closed, and what is behind is neither decided nor recorded', async () => {
  const before = await entryCount();
  const { statuses, isClosed } = await statusesOf(retrievals(300));
  assert.equal(isClosed, true);
  assert.deepEqual(statuses, []);
  const recorded = (await entryCount()) - before;
  assert.ok(recorded <= SERVED_AHEAD, `${recorded} of 300 were decided`);
  assert.deepEqual((await scene.service.anonymous.get('/api/v1/health')).body, { data: { status: 'ok' } });
});

test('a connection that takes its answers may ask as often as it likes', async () => {
  const { agent } = scene;
  for (let round = 0; round < 40; round++) {
    assert.equal((await agent.get('/api/v1/credentials/open/stored')).status, 200);
  }
});

test('requests of one connection take effect in order, unless all of them are safe', async () => {
  const KEPT = 'Connection: keep-alive';
  const store = (value: string): Buffer =>
    scene.bytesOf({
      ...{ method: 'POST', target: '/api/v1/credentials', headers: [KEPT] },
      body: JSON.stringify({ path: 'open/ordered', value }),
    });
  const retrieve = scene.bytesOf({ target: '/api/v1/credentials/open/ordered', headers: [KEPT] });
  const remove = scene.bytesOf({ method: 'DELETE', target: '/api/v1/credentials/open/ordered', headers: [KEPT] });
  for (let round = 0; round < 10; round++) {
    const [first, second] = [`first-${round}`, `second-${round}`];
    const sent = [store(first), retrieve, retrieve, store(second), retrieve, remove, retrieve];
    const { head, body } = await sendRaw(address, Buffer.concat([...sent, scene.bytesOf({ target: '/nowhere' })]));
    const text = `${head}\r\n\r\n${body}`;
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
    assert.deepEqual(statuses, [201, 200, 200, 201, 200, 204, 404, 404]);
    const values = [...text.matchAll(/"value":"([^"]*)"/g)].map(([, value]) => value);
    assert.deepEqual(values, [first, first, second]);
  }
});

test('nothing behind a request that ends the connection takes effect', () =>
  scene.untouchedBy(async () => {
    const early = scene.bytesOf({
      method: 'POST',
      token: null,
      headers: ['Content-Length: 9', 'Connection: keep-alive'],
    });
    const remove = scene.bytesOf({ method: 'DELETE', target: '/api/v1/credentials/open/stored' });
    const { head, isClosed } = await sendRaw(address, Buffer.concat([early, Buffer.from('{"a":"b"}'), remove]));
    assert.match(head, /^HTTP\/1\.1 401 /);
    assert.equal(isClosed, true);
  }));
