// The overview: matrix, tree, search, activity and nodes. SOURCE: docs/api.md, "Overview".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import type { Matrix } from '../../src/api/types.ts';
import { ACTIONS } from '../../src/vault/policies/policy.ts';
import { startUpstream } from '../broker/upstream.ts';
import { addOperator } from '../kit/operators.ts';
import { runs } from '../kit/property.ts';
import { assertInvalid, dataOf } from '../kit/responses.ts';
import { startAnotherNode, startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const service = await startTestService({ after });
const { admin } = service;
const upstream = await startUpstream({ after }, (_, response) => response.end('ok'));
const PATHS = [
  'a',
  'a/b',
  'a/b/c',
  'a/b/d',
  'a-b',
  'a.b',
  'a/b.c',
  'a/b-c/d',
  'b/c',
  'b/c/d/e',
  'c',
  'c/d',
  'C/d',
  'z/~',
  ...Array.from({ length: 30 }, (_, number) => `many/${number % 7}/${number}`),
];

before(async () => {
  for (const path of PATHS)
    await admin.post('/api/v1/credentials', { path, value: 'a value', description: `of ${path}` });
  await service.agent('reader', { 'a/*': ['retrieve', 'list'], 'a/b': ['use'], 'many/3/*': ['store', 'delete'] });
  await service.agent('Writer', { '*': ['store'] });
  await service.agent('without');
  await addOperator(service, 'annabel', ['viewer']);
});

const matrixOf = async (query: string) =>
  dataOf(
    await admin.get(`/api/v1/matrix?${query}`),
    200,
    'agents agents_total paths paths_total actions decisions cells',
  );

test('a cell of the matrix is what simulate decides, with the same reason', async () => {
  const { agents, paths, actions, decisions, cells }: Matrix = await matrixOf('path_limit=100');
  assert.deepEqual(actions, ACTIONS);
  assert.deepEqual(
    agents.map(({ name }) => name),
    ['Writer', 'reader', 'without'],
  );
  assert.deepEqual(paths, [...PATHS].sort());
  let cell = 0;
  for (const [row, { name: agent }] of agents.entries()) {
    for (const [column, resource] of paths.entries()) {
      for (const [index, action] of actions.entries()) {
        // One in 23, so that each action, agent and directory comes up.
        if (cell++ % 23 !== 0) continue;
        const { body } = await admin.post('/api/v1/policies/simulate', { agent, resource, action });
        const { lease_ttl: _, ...simulated } = body.data;
        assert.deepEqual(decisions[cells[row]?.[column]?.[index] ?? -1], simulated);
      }
    }
  }
  assert.equal(new Set(decisions.map((each) => JSON.stringify(each))).size, decisions.length);
});

test('the matrix has pages of agents and of paths, and a prefix', async () => {
  const page = await matrixOf('agent_offset=1&agent_limit=1&path_offset=2&path_limit=3&prefix=a');
  const below = [...PATHS].sort().filter((path) => path === 'a' || path.startsWith('a/'));
  assert.deepEqual([page.agents, page.agents_total], [[{ name: 'reader' }], 3]);
  assert.deepEqual([page.paths, page.paths_total], [below.slice(2, 5), below.length]);
  assert.deepEqual([page.cells.length, page.cells[0].length], [1, 3]);
  const found = await matrixOf('agent=wi&path_limit=1');
  assert.deepEqual([found.agents, found.agents_total, found.cells.length], [[{ name: 'without' }], 1, 1]);
  const beyond = await matrixOf('agent_offset=3&path_offset=1000');
  assert.deepEqual([beyond.agents, beyond.paths, beyond.cells, beyond.decisions], [[], [], [], []]);
  for (const [query, field] of [
    ['agent_limit=51', 'agent_limit'],
    ['agent_limit=0', 'agent_limit'],
    ['path_limit=101', 'path_limit'],
    ['path_offset=-1', 'path_offset'],
    ['prefix=a//b', 'prefix'],
    ['prefix=a/', 'prefix'],
    ['limit=1', 'query'],
  ]) {
    assertInvalid(await admin.get(`/api/v1/matrix?${query}`), field ?? '');
  }
});

/** The level in the order of paths, naively. */
function levelOf(prefix: string): { name: string; kind: string; path: string; credentials?: number }[] {
  const base = prefix === '' ? '' : `${prefix}/`;
  const entries = new Map<string, { name: string; kind: string; path: string; credentials?: number }>();
  for (const path of [...PATHS].sort().filter((one) => one.startsWith(base))) {
    const [name = '', ...below] = path.slice(base.length).split('/');
    if (below.length === 0) entries.set(path, { name, kind: 'credential', path });
    else {
      const known = entries.get(`${base}${name}/`);
      const credentials = (known?.credentials ?? 0) + 1;
      entries.set(`${base}${name}/`, { name, kind: 'directory', path: base + name, credentials });
    }
  }
  return [...entries.values()];
}

test('each level of the tree equals a naive model, in pages of any size', async () => {
  const prefixes = ['', 'a', 'a/b', 'b', 'b/c', 'c', 'many', 'many/3', 'none', 'a.b'];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...prefixes), fc.integer({ min: 1, max: 12 }), async (prefix, limit) => {
      const entries: Record<string, unknown>[] = [];
      for (let after = ''; ; ) {
        const query = `limit=${limit}${prefix === '' ? '' : `&prefix=${prefix}`}${after === '' ? '' : `&after=${after}`}`;
        const page = dataOf(await admin.get(`/api/v1/tree?${query}`), 200, 'prefix entries next');
        assert.equal(page.prefix, prefix);
        assert.ok(page.entries.length <= limit);
        entries.push(...page.entries);
        if (page.next === null) break;
        assert.equal(page.entries.length, limit);
        after = page.next;
      }
      const shown = entries.map(({ type, updated_at, ...entry }) => {
        assert.equal(type !== undefined && updated_at !== undefined, entry['kind'] === 'credential');
        return entry;
      });
      assert.deepEqual(shown, levelOf(prefix));
    }),
    runs(8),
  );
  for (const [query, field] of [
    ['limit=0', 'limit'],
    ['limit=1001', 'limit'],
    ['prefix=a//b', 'prefix'],
    ['after=/', 'after'],
    ['prefix=a&after=b/c', 'after'],
    ['prefix=a&after=a/b/c', 'after'],
    ['after=a%20b', 'after'],
  ]) {
    assertInvalid(await admin.get(`/api/v1/tree?${query}`), field ?? '');
  }
});

test('a search finds parts of names in any case: equal names first, then those that begin with the text', async () => {
  const search = async (query: string) => {
    const data = dataOf(await admin.get(`/api/v1/search?${query}`), 200, 'complete results');
    assert.equal(data.complete, true);
    return data.results.map(({ kind, name }: Record<string, string>) => `${kind} ${name}`);
  };
  assert.deepEqual(await search('q=C'), [
    'credential c',
    'credential C/d',
    'credential c/d',
    'credential a/b-c/d',
    'credential a/b.c',
    'credential a/b/c',
    'credential b/c',
    'credential b/c/d/e',
  ]);
  assert.deepEqual(await search('q=WRITER'), ['agent Writer', 'policy Writer-0']);
  assert.deepEqual(await search('q=READER&limit=2'), ['agent reader', 'policy reader-0']);
  assert.deepEqual(await search('q=bel'), ['operator operator:annabel']);
  for (const none of ['%25', '_', '*', '%5C', "'", 'ü', '%00']) assert.deepEqual(await search(`q=${none}`), [], none);
  const { results } = (await admin.get('/api/v1/search?q=many/3/3&limit=1')).body.data;
  assert.deepEqual(results, [{ kind: 'credential', name: 'many/3/3', description: 'of many/3/3' }]);
  assertInvalid(await admin.get('/api/v1/search'), 'q');
  for (const q of ['', 'a'.repeat(129)]) assertInvalid(await admin.get(`/api/v1/search?q=${q}`), 'q');
  for (const limit of ['0', '51', 'x']) assertInvalid(await admin.get(`/api/v1/search?q=a&limit=${limit}`), 'limit');
});

test('the activity counts what this node allowed and denied, for each minute of the last hour', async () => {
  const targets = [
    { origin: `https://127.0.0.1:${upstream.port}`, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem },
  ];
  await admin.put('/api/v1/targets/c', { targets, placement: { kind: 'bearer' } });
  const counts = async () => {
    const minutes = dataOf(await admin.get('/api/v1/activity'), 200, 'at retrievals uses denials');
    const begin = Date.parse(minutes[0].at);
    assert.deepEqual(
      minutes.map(({ at }: { at: string }) => (Date.parse(at) - begin) / 60_000),
      Array.from({ length: 60 }, (_, index) => index),
    );
    return ['retrievals', 'uses', 'denials'].map((name) =>
      minutes.reduce((sum: number, minute: Record<string, number>) => sum + (minute[name] ?? 0), 0),
    );
  };
  const before = await counts();
  for (let number = 0; number < 5; number++) await admin.get('/api/v1/credentials/c');
  await admin.get('/api/v1/credentials/none');
  const use = { path: 'c', method: 'GET', url: `https://127.0.0.1:${upstream.port}/` };
  assert.equal((await admin.post('/api/v1/use', use)).status, 200);
  const stranger = await service.agent('stranger');
  await stranger.get('/api/v1/credentials/c');
  const more = (await counts()).map((count, index) => count - (before[index] ?? 0));
  assert.deepEqual(more, [5, 1, 1]);
});

test('the nodes are this one and, on a shared database, the others', async () => {
  const KEYS = 'name version started_at status is_self seen_at newest_seq';
  const [self, ...others] = dataOf(await admin.get('/api/v1/nodes'), 200, KEYS);
  assert.deepEqual([self.is_self, self.status, others], [true, 'ok', []]);
  assert.match(self.name, new RegExp(`:${process.pid}$`));
  const { total } = (await admin.get('/api/v1/audit?limit=1')).body.meta;
  assert.equal(self.newest_seq, total);
  if (STORE === 'sqlite') return;
  const other = await startAnotherNode({ after }, service);
  const [first, second, ...more] = dataOf(await admin.get('/api/v1/nodes'), 200, KEYS);
  assert.deepEqual(
    [first.is_self, second.is_self, second.status, second.newest_seq, more],
    [true, false, null, null, []],
  );
  const [seen] = (await other.admin.get('/api/v1/nodes')).body.data;
  assert.deepEqual([second.name, second.version, second.started_at], [seen.name, seen.version, seen.started_at]);
  await other.stop();
});
