// Pipelined requests: a few are served in order; a connection that sends too many is closed without further work.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { sendRaw } from '../kit/raw.ts';
import { startFixture } from './fixture.ts';

const fixture = await startFixture({ after });
const { address } = fixture.service;

/** The number of requests that may wait while one is being answered. */
const SERVED_AHEAD = 9;

function retrievals(count: number): Buffer {
  const head = `GET /api/v1/credentials/open/stored HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${fixture.agent.token}`;
  return Buffer.from(`${head}\r\n\r\n`.repeat(count));
}

/** Reading the log is not recorded. */
async function entryCount(): Promise<number> {
  return (await fixture.service.admin.get('/api/v1/audit?limit=1')).body.meta.total;
}

const statusesIn = (text: string): string[] =>
  [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status ?? '');

/** The connection is watched for a second after that many responses. */
async function statusesOf(bytes: Buffer, count: number): Promise<{ statuses: string[]; isClosed: boolean }> {
  const isComplete = (text: string) => statusesIn(text).length === count;
  const { head, body, isClosed } = await sendRaw(address, bytes, { isComplete, thenMs: 1000 });
  return { statuses: statusesIn(`${head}\r\n\r\n${body}`), isClosed };
}

test('nine pipelined requests on a connection are all answered', async () => {
  const { statuses, isClosed } = await statusesOf(retrievals(SERVED_AHEAD), SERVED_AHEAD);
  assert.deepEqual(statuses, Array<string>(SERVED_AHEAD).fill('200'));
  assert.equal(isClosed, false, 'the connection stays');
});

test('a connection with more is closed, and the surplus is neither decided nor recorded', async () => {
  const before = await entryCount();
  const { statuses, isClosed } = await statusesOf(retrievals(300), 300);
  assert.equal(isClosed, true);
  assert.deepEqual(statuses, []);
  const recorded = (await entryCount()) - before;
  assert.ok(recorded <= SERVED_AHEAD, `${recorded} of 300 were decided`);
  assert.deepEqual((await fixture.service.anonymous.get('/api/v1/health')).body, { data: { status: 'ok' } });
});

test('a connection that reads its responses may send any number of requests', async () => {
  const { agent } = fixture;
  for (let round = 0; round < 40; round++) {
    assert.equal((await agent.get('/api/v1/credentials/open/stored')).status, 200);
  }
});

test('pipelined requests take effect in order', async () => {
  const KEPT = 'Connection: keep-alive';
  const store = (value: string): Buffer =>
    fixture.bytesOf({
      method: 'POST',
      target: '/api/v1/credentials',
      headers: [KEPT],
      body: JSON.stringify({ path: 'open/ordered', value }),
    });
  const retrieve = fixture.bytesOf({ target: '/api/v1/credentials/open/ordered', headers: [KEPT] });
  const remove = fixture.bytesOf({ method: 'DELETE', target: '/api/v1/credentials/open/ordered', headers: [KEPT] });
  for (let round = 0; round < 10; round++) {
    const [first, second] = [`first-${round}`, `second-${round}`];
    const sent = [store(first), retrieve, retrieve, store(second), retrieve, remove, retrieve];
    const { head, body } = await sendRaw(address, Buffer.concat([...sent, fixture.bytesOf({ target: '/nowhere' })]));
    const text = `${head}\r\n\r\n${body}`;
    const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
    assert.deepEqual(statuses, [201, 200, 200, 201, 200, 204, 404, 404]);
    const values = [...text.matchAll(/"value":"([^"]*)"/g)].map(([, value]) => value);
    assert.deepEqual(values, [first, first, second]);
  }
});

test('requests after one that closes the connection have no effect', () =>
  fixture.assertUnchangedBy(async () => {
    const early = fixture.bytesOf({
      method: 'POST',
      token: null,
      headers: ['Content-Length: 9', 'Connection: keep-alive'],
    });
    const remove = fixture.bytesOf({ method: 'DELETE', target: '/api/v1/credentials/open/stored' });
    const { head, isClosed } = await sendRaw(address, Buffer.concat([early, Buffer.from('{"a":"b"}'), remove]));
    assert.match(head, /^HTTP\/1\.1 401 /);
    assert.equal(isClosed, true);
  }));
