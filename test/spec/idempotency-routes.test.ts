// Each route that accepts an Idempotency-Key: repeated, sent 20 times concurrently, and sent with another body.
// SOURCE: docs/decisions.md, "Idempotency".

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import type { Route } from '../../src/http/route.ts';
import { ROUTES } from '../../src/http/routes/table.ts';
import type { Client, TestResponse } from '../kit/client.ts';
import { dumpCallerData } from '../kit/direct-db.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { assertInvalid, auditEntriesOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';
import { readDocument } from './document.ts';
import { eventOf } from './events.ts';

const CREDENTIALS = '/api/v1/credentials';
const service = await startTestService({ after });
const { admin } = service;
const agent = await service.agent('ci', { 'ci/*': ['store', 'retrieve'] });

const post = (as: Client, path: string, body: unknown, key: string, more = {}) =>
  as.call('POST', path, body, { 'idempotency-key': key, ...more });

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
    ...{ path: `/api/v1/leases/${await lend(as)}/renew`, body: undefined },
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
    ({ method, who, path }) => method === 'POST' && who !== 'public' && !NOT_KEPT.test(path),
  );
  assert.deepEqual(changing.map(({ method, path }) => `${method} ${path}`).sort(), Object.keys(ASKED).sort());
});

for (const [route, ask] of Object.entries(ASKED)) {
  const row = ROUTES.find(({ method, path }) => `${method} ${path}` === route) as Route & { readonly event: string };
  const callers: readonly (readonly [who: string, as: Client])[] = [
    ['the administrator', admin],
    ...(row.who === 'authenticated' ? [['an agent', agent] as const] : []),
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
        entries.map(({ event_type, result }) => [event_type, result]),
        [[eventOf(row), 'allowed']],
      );
      // Each request has its own id; the entry has the first one's.
      const ids = answers.map(({ headers }) => headers.get('x-request-id'));
      assert.deepEqual([new Set(ids).size, entries[0].request_id], [3, ids[0]]);
    });
  }

  test(`${route}: 20 concurrent requests make one change, one entry and 20 equal responses`, async () => {
    const { path, body } = await ask(admin);
    const key = randomUUID();
    let answers: TestResponse[] = [];
    const entries = await auditEntriesOf(service, async () => {
      answers = await Promise.all(Array.from({ length: 20 }, () => post(admin, path, body, key)));
    });
    assert.equal(entries.length, 1);
    assert.equal(answers[0]?.status, row.status);
    assert.equal(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size, 1);
  });

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
