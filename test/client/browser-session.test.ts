// How calls authenticate with a browser's session: by the cookie, which the browser adds, and the part in a header.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { browserCaller } from '../../src/client/authentication.ts';
import { Leasehold } from '../../src/client/leasehold.ts';

interface Sent {
  readonly credentials: string | undefined;
  readonly authorization: string | undefined;
  readonly part: string | string[] | undefined;
}

/** A server that records each call; the options of `fetch` are those that a browser would obey. */
async function startRecorder(t: TestContext) {
  const sent: Sent[] = [];
  let credentials: string | undefined;
  const server = createServer(({ headers }, response) => {
    sent.push({ credentials, authorization: headers.authorization, part: headers['x-leasehold-session-part'] });
    response.setHeader('content-type', 'application/json').end('{"data":[]}');
  }).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const record: typeof fetch = (input, init) => {
    credentials = init?.credentials;
    return fetch(input, init);
  };
  return { sent, record, address: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('a browser session sends its part and the cookie, and no Authorization header', async (t) => {
  const { sent, record, address } = await startRecorder(t);
  let part: string | null = 'half';
  const client = new Leasehold({ address, fetch: record, caller: browserCaller(() => part) });
  await client.policies.list();
  part = null;
  await client.policies.list();
  assert.deepEqual(sent, [
    { credentials: 'same-origin', authorization: undefined, part: 'half' },
    { credentials: 'same-origin', authorization: undefined, part: undefined },
  ]);
});

test('a token is sent without cookies', async (t) => {
  const { sent, record, address } = await startRecorder(t);
  await new Leasehold({ address, fetch: record, token: 'lhs_token' }).policies.list();
  assert.deepEqual(sent, [{ credentials: 'omit', authorization: 'Bearer lhs_token', part: undefined }]);
});

test('one kind of authentication is given', () => {
  const caller = browserCaller(() => null);
  assert.throws(() => new Leasehold({ address: 'http://127.0.0.1', token: 'a', caller }), { code: 'BAD_OPTIONS' });
});
