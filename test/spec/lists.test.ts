// Lists, complete and paginated. SOURCE: docs/decisions.md, "Requests".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { logIn, readAgentKey } from '../kit/client.ts';
import { askToRetrieve } from '../kit/held.ts';
import { newOperatorKey } from '../kit/operators.ts';
import { assertInvalid, dataOf } from '../kit/responses.ts';
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
    principal: `agent:${name}`,
    resources: ['listed/*'],
    ...RETRIEVALS,
  });
  const token = await logIn(service.address, name, readAgentKey(service.dataDir, name));
  for (let n = 0; n < COUNT; n++) await (await askToRetrieve(service, token, `listed/${n}`)).abandon();
});

const keysOf = (rows: Record<string, string>[], key: string) => rows.map((row) => row[key] ?? '');

for (const { path, keys, key, isNewestFirst, nobodys } of LISTS) {
  test(`GET ${path} returns all rows in order without meta, and pages with limit and offset`, async () => {
    const all = dataOf(await admin.get(path), 200, keys);
    const ordered = keysOf(all, key).sort();
    assert.equal(all.length, COUNT);
    assert.deepEqual(keysOf(all, key), isNewestFirst ? ordered.reverse() : ordered);
    for (const [query, limit, offset] of [
      ['limit=3&offset=3', 3, 3],
      ['limit=5&offset=7', 5, 7],
      ['limit=2', 2, 0],
      ['offset=2', 100, 2],
      ['limit=1001', 1000, 0],
    ] as const) {
      const answer = await admin.get(`${path}?${query}`);
      assert.deepEqual(dataOf(answer, 200, keys, 'meta'), all.slice(offset, offset + limit), query);
      assert.deepEqual(answer.body.meta, { total: COUNT, limit, offset });
    }
    if (nobodys === undefined) return;
    assert.deepEqual(dataOf(await admin.get(`${path}?${nobodys}`), 200, keys), []);
    const page = await admin.get(`${path}?${nobodys}&limit=5`);
    assert.deepEqual(page.body, { data: [], meta: { total: 0, limit: 5, offset: 0 } });
  });
}

test('a limit or offset that is not an integer, or is given twice, is rejected', async () => {
  for (const limit of ['0', '-1', '1.5', 'ten', '', '1e2', '%2B1', '1%20', '0x10', '9'.repeat(40)]) {
    assertInvalid(await admin.get(`/api/v1/leases?limit=${limit}`), 'limit');
  }
  for (const offset of ['-1', '1.5', 'ten', '', '9'.repeat(40)]) {
    assertInvalid(await admin.get(`/api/v1/leases?offset=${offset}`), 'offset');
  }
  assertInvalid(await admin.get('/api/v1/leases?limit=1&limit=1'), 'limit');
});

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
