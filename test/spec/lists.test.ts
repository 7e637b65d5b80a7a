// Lists, complete and paginated. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve } from '../kit/held.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { assertInvalid, assertKeys, dataOf } from '../kit/responses.ts';
import { startTestService } from '../kit/service.ts';

const COUNT = 7;

const service = await startTestService({ after });
const { admin } = service;

interface List {
  readonly path: string;
  readonly keys: string;
  /** The field that identifies a row. */
  readonly key: string;
  readonly isNewestFirst?: true;
  /** A filter without matches. */
  readonly nobodys?: string;
}

const LISTS: readonly List[] = [
  {
    path: '/api/v1/credentials',
    keys: 'path type description created_at updated_at access_count',
    key: 'path',
    nobodys: 'type=nobodys',
  },
  { path: '/api/v1/policies', keys: 'name principal resources actions max_ttl created_at approval', key: 'name' },
  { path: '/api/v1/agents', keys: 'name description public_key registered_at', key: 'name' },
  { path: '/api/v1/operators', keys: 'name description roles public_key passkeys identity added_at', key: 'name' },
  {
    path: '/api/v1/leases',
    keys: 'lease_id agent_name path version policy_name issued_at expires_at revoked_at status',
    key: 'path',
    isNewestFirst: true,
    nobodys: 'agent=nobody',
  },
  {
    path: '/api/v1/approvals',
    keys: [
      'approval_id nonce status agent_name action path policy_names covers each uses seconds for_session quorum',
      'approvals method host target_path purpose requested_at expires_at answered_at answered_by reason uses_left',
      'grant_ends_at',
    ].join(' '),
    key: 'path',
    isNewestFirst: true,
    nobodys: 'agent=nobody&status=denied',
  },
];

const RETRIEVALS = { actions: ['retrieve'], approval: { for: 'retrieve' } };

before(async () => {
  for (let n = 0; n < COUNT; n++) {
    await admin.post('/api/v1/agents', { name: `agent-${n}` });
    const { publicKey } = newOperatorKey();
    await admin.post('/api/v1/operators', { name: `operator-${n}`, roles: ['approver'], public_key: publicKey });
    await admin.post('/api/v1/credentials', { path: `listed/${n}`, value: 'v' });
    await admin.get(`/api/v1/credentials/listed/${n}`);
    const policy = { name: `policy-${n}`, principal: 'agent:*', resources: ['a'], ...RETRIEVALS };
    // The last one is that of the approvals.
    if (n < COUNT - 1) await admin.post('/api/v1/policies', policy);
  }
  const name = 'agent-0';
  await admin.put('/api/v1/policies/policy-last', {
    ...{ principal: `agent:${name}`, resources: ['listed/*'] },
    ...RETRIEVALS,
  });
  const token = await logIn(service.address, name, readAgentKey(service.dataDir, name));
  for (let n = 0; n < COUNT; n++) await (await askToRetrieve(service, token, `listed/${n}`)).abandon();
});

for (const { path, keys, key, isNewestFirst, nobodys } of LISTS) {
  suite(`GET ${path}`, () => {
    const keysOf = (rows: Record<string, string>[]) => rows.map((row) => row[key] ?? '');
    const readAll = async () => dataOf(await admin.get(path), 200, keys);

    test(`GET ${path} returns all rows in order, without meta`, async () => {
      const found = keysOf(await readAll());
      const ordered = [...found].sort();
      assert.equal(found.length, COUNT);
      assert.deepEqual(found, isNewestFirst ? ordered.reverse() : ordered);
    });

    test(`GET ${path} pages with limit and offset, and returns meta with data`, async () => {
      const all = await readAll();
      for (const [limit, offset] of [
        [3, 0],
        [3, 3],
        [3, 6],
        [1, 4],
        [100, 0],
        [5, 7],
        [5, 1000],
      ] as const) {
        const answer = await admin.get(`${path}?limit=${limit}&offset=${offset}`);
        const rows = dataOf(answer, 200, keys, 'meta');
        assert.deepEqual(rows, all.slice(offset, offset + limit));
        assert.deepEqual(answer.body.meta, { total: COUNT, limit, offset });
      }
    });

    test(`GET ${path} pages with limit or offset alone; the other has the audit list’s default`, async () => {
      const all = await readAll();
      const limited = await admin.get(`${path}?limit=2`);
      assert.deepEqual(dataOf(limited, 200, keys, 'meta'), all.slice(0, 2));
      assertKeys(limited.body.meta, 'total limit offset');
      assert.deepEqual(limited.body.meta, { total: COUNT, limit: 2, offset: 0 });
      const skipped = await admin.get(`${path}?offset=2`);
      assert.deepEqual(dataOf(skipped, 200, keys, 'meta'), all.slice(2));
      assert.deepEqual(skipped.body.meta, { total: COUNT, limit: 100, offset: 2 });
    });

    test(`GET ${path} reduces a limit over 1000 to 1000, as meta shows`, async () => {
      for (const limit of ['1001', '999999999999999']) {
        const answer = await admin.get(`${path}?limit=${limit}`);
        assert.equal(dataOf(answer, 200, keys, 'meta').length, COUNT);
        assert.deepEqual(answer.body.meta, { total: COUNT, limit: 1000, offset: 0 });
      }
    });

    test(`GET ${path} rejects a limit or offset that is not an integer or is given twice`, async () => {
      for (const limit of ['0', '-1', '1.5', 'ten', '', '1e2', '%2B1', '1%20', '0x10', '9'.repeat(40)]) {
        assertInvalid(await admin.get(`${path}?limit=${limit}`), 'limit');
      }
      for (const offset of ['-1', '1.5', 'ten', '', '9'.repeat(40)]) {
        assertInvalid(await admin.get(`${path}?offset=${offset}`), 'offset');
      }
      assertInvalid(await admin.get(`${path}?limit=1&limit=1`), 'limit');
    });

    if (nobodys !== undefined) {
      test(`GET ${path} returns an empty list for a filter value without matches`, async () => {
        assert.deepEqual(dataOf(await admin.get(`${path}?${nobodys}`), 200, keys), []);
        const page = await admin.get(`${path}?${nobodys}&limit=5`);
        assert.deepEqual(dataOf(page, 200, keys, 'meta'), []);
        assert.deepEqual(page.body.meta, { total: 0, limit: 5, offset: 0 });
      });
    }
  });
}

test('the total of a page counts the rows that the caller may see and the filter matches', async () => {
  const agent = await service.agent('sees-two', { 'listed/3': ['list'], 'listed/5': ['list', 'retrieve'] });
  await admin.post('/api/v1/credentials', { path: 'listed/5', value: 'v', type: 'token' });
  const page = await agent.get('/api/v1/credentials?limit=1&offset=1');
  assert.deepEqual(page.body.meta, { total: 2, limit: 1, offset: 1 });
  assert.equal(page.body.data[0].path, 'listed/5');
  assert.equal((await agent.get('/api/v1/credentials?limit=1&type=token')).body.meta.total, 1);
  await agent.get('/api/v1/credentials/listed/5');
  assert.equal((await agent.get('/api/v1/leases?limit=1')).body.meta.total, 1);
  assert.equal((await agent.get('/api/v1/leases?limit=1&status=revoked')).body.meta.total, 0);
});
