// Each route that accepts an Idempotency-Key, repeated and with another body. test/core/idempotent.test.ts has when a
// reply is used, and test/hostile/idempotency.test.ts that callers are separate.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { PERMISSIONS } from '../../src/core/permissions.ts';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/route-table.ts';
import { type Client, logIn, readAgentKey, type TestResponse } from '../kit/client.ts';
import { dumpCallerData } from '../kit/direct-db.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { rawRequest, sendRaw, toResponse } from '../kit/raw.ts';
import { assertInvalid, assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { readDocument } from './document.ts';

const CREDENTIALS = '/api/v1/credentials';
const service = await startTestService({ after });
const { admin } = service;
const agent = await service.agent('ci', { 'ci/*': ['store', 'retrieve'] });

const post = (as: Client, path: string, body: unknown, key: string, more = {}) =>
  as.call('POST', path, body, { 'idempotency-key': key, ...more });

const store = (as: Client, key: string, body: Record<string, unknown>, more = {}) =>
  post(as, CREDENTIALS, { value: 'v', ...body }, key, more);
const versionOf = async (path: string): Promise<number> =>
  (await admin.get(`${CREDENTIALS}/${path}?view=metadata`)).body.data.versions.length;

let paths = 0;
/** Issues the caller a lease on a new credential; returns the lease's id. */
async function lend(to: Client): Promise<string> {
  const path = `ci/lent-${++paths}`;
  await admin.post(CREDENTIALS, { path, value: 'v' });
  return (await to.get(`${CREDENTIALS}/${path}`)).body.data.lease_id;
}

/** A request for each route that accepts the header and each of its callers. */
const ASKED: Readonly<Record<string, (as: Client) => Promise<{ path: string; body: unknown }>>> = {
  [`POST ${CREDENTIALS}`]: async () => ({ path: CREDENTIALS, body: { path: `ci/asked-${++paths}`, value: 'v' } }),
  'POST /api/v1/policies': async () => {
    const policy = { name: `asked-${++paths}`, principal: 'agent:x', resources: ['x/*', 'y'], actions: ['retrieve'] };
    return { path: '/api/v1/policies', body: policy };
  },
  'POST /api/v1/agents': async () => ({ path: '/api/v1/agents', body: { name: `asked-${++paths}`, description: 'ü' } }),
  'POST /api/v1/operators': async () => {
    const operator = { name: `asked-${++paths}`, roles: ['viewer'], public_key: newOperatorKey().publicKey };
    return { path: '/api/v1/operators', body: operator };
  },
  'POST /api/v1/leases/{lease_id}/renew': async (as) => ({
    path: `/api/v1/leases/${await lend(as)}/renew`,
    body: undefined,
  }),
  'POST /api/v1/leases/revoke': async (as) => {
    await lend(as);
    await lend(as);
    return { path: '/api/v1/leases/revoke', body: { agent: as === admin ? 'admin' : 'ci' } };
  },
};

/**
 * A simulation changes nothing. The responses of a use and of a use lease are not kept: they are the upstream's and a
 * token. A panic can be repeated, and so can a rotation, a test of keys or the acceptance of a roll-back. The name of a
 * key slot can be taken once. A backup is a stream. A locked vault keeps nothing. A session can be renewed again,
 * and codes and halves of a token are secrets. An approval can be answered once.
 */
const NOT_KEPT =
  /\/(?:simulate|use|panic|backup|rotate|test|slots|lock|rollback|session\/renew|browser|handoff|enrolment|approve|deny)$/;

test('every POST that changes something for an authenticated caller accepts the header, as the document says', async () => {
  const { operations } = await readDocument(service);
  const honouring = operations
    .filter(({ operation }) => operation.parameters?.some(({ name }: { name: string }) => name === 'Idempotency-Key'))
    .map(({ name }) => name.replace('post', 'POST'));
  assert.deepEqual(honouring.sort(), Object.keys(ASKED).sort());
  const changing = ROUTES.filter(
    ({ method, permission, path }) => method === 'POST' && permission !== null && !NOT_KEPT.test(path),
  );
  assert.deepEqual(changing.map(({ method, path }) => `${method} ${path}`).sort(), Object.keys(ASKED).sort());
});

for (const [route, ask] of Object.entries(ASKED)) {
  const row = ROUTES.find(({ method, path }) => `${method} ${path}` === route) as Route;
  const callers: readonly (readonly [who: string, as: Client])[] = [
    ['the administrator', admin],
    ...(row.permission !== null && PERMISSIONS[row.permission].agents ? [['an agent', agent] as const] : []),
  ];
  for (const [who, as] of callers) {
    test(`${route}: a repeat by ${who} returns the same response, changes nothing and is not recorded`, async () => {
      const { path, body } = await ask(as);
      const key = randomUUID();
      const answers: TestResponse[] = [];
      const entries = await auditEntriesOf(service, async () => {
        answers.push(await post(as, path, body, key));
        const before = await dumpCallerData(service.dataDir);
        for (let i = 0; i < 2; i++) answers.push(await post(as, path, body, key));
        assert.deepEqual(await dumpCallerData(service.dataDir), before);
      });
      assert.deepEqual(
        answers.map(({ status, text }) => [status, text]),
        Array(3).fill([row.status, answers[0]?.text]),
      );
      assert.deepEqual(
        entries.map(({ result }) => result),
        ['allowed'],
      );
      // Each request has its own id; the entry has the first one's.
      const ids = answers.map(({ headers }) => headers.get('x-request-id'));
      assert.deepEqual([new Set(ids).size, entries[0].request_id], [3, ids[0]]);
    });
  }

  test(`${route}: a different request under the key is 400, and the first one can still be repeated`, async () => {
    const [one, two] = [await ask(admin), await ask(admin)];
    const key = randomUUID();
    const first = await post(admin, one.path, one.body, key);
    const another = one.path === two.path && route.includes('revoke') ? { path: 'ci/lent-1' } : two.body;
    const entries = await auditEntriesOf(service, async () => {
      assertInvalid(await post(admin, two.path, another, key), 'Idempotency-Key');
      assert.equal((await post(admin, one.path, one.body, key)).text, first.text);
    });
    assert.deepEqual(entries, []);
    assert.equal((await post(admin, two.path, another, randomUUID())).status, row.status);
  });
}

/** Requests, and a check that 20 concurrent ones had one effect besides their entry and their responses. */
const AT_ONCE: readonly (readonly [path: string, body: object, assertOne: () => Promise<unknown>])[] = [
  [CREDENTIALS, { path: 'ci/at-once', value: 'v' }, async () => assert.equal(await versionOf('ci/at-once'), 1)],
  [
    '/api/v1/agents',
    { name: 'at-once' },
    // Each request has generated a key: the agent has its own, and the others are gone.
    async () => {
      assert.deepEqual(readdirSync(join(service.dataDir, 'agents', '.pending')), []);
      await logIn(service.address, 'at-once', readAgentKey(service.dataDir, 'at-once'));
    },
  ],
];

for (const [path, body, assertOne] of AT_ONCE) {
  test(`20 concurrent requests POST ${path} make one change, one entry and 20 equal responses`, async () => {
    const key = randomUUID();
    let answers: TestResponse[] = [];
    const entries = await auditEntriesOf(service, async () => {
      answers = await Promise.all(Array.from({ length: 20 }, () => post(admin, path, body, key)));
    });
    assert.equal(entries.length, 1);
    assert.deepEqual([...new Set(answers.map(({ status }) => status))], [201]);
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1);
    await assertOne();
  });
}

test('the request fingerprint covers value, description, type and If-None-Match', async () => {
  const key = randomUUID();
  const body = { path: 'ci/parts', value: 'one', description: 'd', type: 'token' };
  assert.equal((await store(agent, key, body)).status, 201);
  for (const part of [
    { value: 'two' },
    { value: 'one ' },
    { description: 'e' },
    { type: 'key' },
    { type: undefined },
  ]) {
    assertInvalid(await store(agent, key, { ...body, ...part }), 'Idempotency-Key');
  }
  assertInvalid(await store(agent, key, body, { 'if-none-match': '*' }), 'Idempotency-Key');
  assertInvalid(await post(agent, '/api/v1/leases/revoke', {}, key), 'agent');
  assertInvalid(await post(agent, '/api/v1/leases/revoke', { agent: 'ci' }, key), 'Idempotency-Key');
  const { path, ...rest } = body;
  assert.equal((await store(agent, key, { ...rest, path })).status, 201);
  assert.equal(await versionOf('ci/parts'), 1);
});

test('routes without idempotency ignore the header, whatever its value', async () => {
  const question = { agent: 'ci', resource: 'ci/x', action: 'retrieve' };
  for (const key of ['k', 'a b', 'k'.repeat(300)]) {
    const first = await post(service.anonymous, '/auth/challenge', { agent_name: 'ci' }, key);
    const second = await post(service.anonymous, '/auth/challenge', { agent_name: 'ci' }, key);
    assert.notEqual(first.body.data.challenge_id, second.body.data.challenge_id);
    assert.equal((await post(admin, '/api/v1/policies/simulate', question, key)).status, 200);
    assert.equal((await admin.call('GET', '/api/v1/policies', undefined, { 'idempotency-key': key })).status, 200);
    assert.equal(
      (await admin.call('DELETE', '/api/v1/policies/none', undefined, { 'idempotency-key': key })).status,
      404,
    );
  }
});

test('a key must be 1 to 255 visible ASCII characters, sent once', async () => {
  let count = 0;
  const ask = async (...lines: string[]) => {
    const body = JSON.stringify({ path: `grammar/${++count}`, value: 'v' });
    const head = [`POST ${CREDENTIALS} HTTP/1.1`, 'Host: localhost', `Authorization: Bearer ${service.adminToken}`];
    const type = ['Content-Type: application/json', `Content-Length: ${body.length}`];
    return toResponse(await sendRaw(service.address, rawRequest([...head, ...type, ...lines], body)));
  };
  assert.equal((await ask('Idempotency-Key: a,b;c')).status, 201);
  assert.equal((await ask('IDEMPOTENCY-KEY:a,b;c  ')).status, 400, 'blanks around it are not part of it');
  const entries = await auditEntriesOf(service, async () => {
    for (const key of ['', 'é', 'k'.repeat(256)]) {
      assertInvalid(await ask(`Idempotency-Key: ${key}`), 'Idempotency-Key');
    }
    for (const second of ['twice', 'other', '']) {
      const message = assertRejected(
        await ask('Idempotency-Key: twice', `idempotency-key: ${second}`),
        'INVALID_REQUEST',
      );
      assert.equal(message, 'Idempotency-Key: must be given once');
    }
  });
  assert.deepEqual(entries, []);
});
