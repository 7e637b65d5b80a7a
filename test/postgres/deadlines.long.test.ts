// Time-outs of responses in a process that was paused: the responses came in time, and it has not read them yet.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, withDeadline } from '../../src/store/postgres/connection.ts';
import { parseAddress } from '../../src/store/postgres/database-url.ts';
import { newDatabase } from '../kit/database.ts';

const TIMEOUT_MS = 200;

/** Sends two statements, and stops this process during the first one for longer than the time-out of both. */
async function pauseDuring(t: TestContext, seconds: number, pauses: 'count' | 'do not count') {
  const connection = await Connection.open(parseAddress(await newDatabase(t)), 'reading');
  t.after(() => connection.close());
  const first = connection.query`SELECT pg_sleep(${seconds})::text AS slept`;
  const response = withDeadline(
    connection,
    TIMEOUT_MS,
    first.then(() => connection.query`SELECT 7 AS answer`),
    pauses,
  );
  // Awaited only after the pause.
  response.catch(() => undefined);
  await sleep(20);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, TIMEOUT_MS + 1500);
  return { connection, response };
}

test('where a pause does not count, a response that came during it is read, and the connection is kept', async (t) => {
  const { connection, response } = await pauseDuring(t, 0.05, 'do not count');
  assert.equal((await response)[0]?.['answer'], 7);
  assert.equal(connection.isOpen, true);
});

test('where a pause counts, as during a commit, the connection is closed', async (t) => {
  const { connection, response } = await pauseDuring(t, 0.05, 'count');
  // The driver may read the response still.
  await response.catch(() => undefined);
  assert.equal(connection.isOpen, false);
});

test('a server that does not respond is given up, also after a pause', async (t) => {
  for (const pauses of ['count', 'do not count'] as const) {
    const { response } = await pauseDuring(t, 600, pauses);
    await assert.rejects(response, { code: 'CONNECTION_CLOSED' });
  }
});
