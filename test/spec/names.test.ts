// How a path is read from a URL; its grammar is in test/core/path.test.ts, and each field's in grammars.test.ts.
// SOURCE: docs/decisions.md, "Names and paths".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { rawRequest, sendRaw } from '../kit/raw.ts';
import { assertRejected } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const CREDENTIALS = '/api/v1/credentials';

const service = await startTestService({ after });
const { admin } = service;
/** A retrieval whose path is written literally into the request line. */
function retrieveRaw(target: string) {
  const lines = [
    `GET ${CREDENTIALS}/${target} HTTP/1.1`,
    'Host: localhost',
    `Authorization: Bearer ${service.adminToken}`,
  ];
  return sendRaw(service.address, rawRequest(lines));
}

test('in a URL prod/db/password and prod%2Fdb%2Fpassword name the same credential', async () => {
  await admin.post(CREDENTIALS, { path: 'prod/db/password', value: 'the one' });
  for (const spelling of ['prod/db/password', 'prod%2Fdb%2Fpassword', 'prod%2fdb/password', '%70rod/db/password']) {
    const answer = await retrieveRaw(spelling);
    assert.equal(answer.status, 200, spelling);
    assert.equal(JSON.parse(answer.body).data.value, 'the one');
  }
  assert.equal((await admin.delete(`${CREDENTIALS}/prod%2Fdb%2Fpassword`)).status, 204);
});

test('a path in a URL is decoded once and never normalised', async () => {
  await admin.post(CREDENTIALS, { path: 'once/a', value: 'v' });
  for (const spelling of [
    'once%252Fa',
    'once/./a',
    'once/b/../a',
    'once//a',
    'once/%2e/a',
    'once/b/%2e%2e/a',
    'once\\a',
  ]) {
    assert.equal((await retrieveRaw(spelling)).status, 400, spelling);
  }
  assert.equal((await retrieveRaw('once/a%zz')).status, 400);
});

test('a credential path is case-sensitive', async () => {
  await admin.post(CREDENTIALS, { path: 'case/Key', value: 'upper' });
  assertRejected(await admin.get(`${CREDENTIALS}/case/key`), 'NOT_FOUND');
  await admin.post(CREDENTIALS, { path: 'case/key', value: 'lower' });
  assert.equal((await admin.get(`${CREDENTIALS}/case/Key`)).body.data.value, 'upper');
});
