// Entity tags of policies, targets, agents, operators and credentials: of several operators who change the same state
// only one succeeds. SOURCE: RFC 9110, sections 8.8.3 and 13; docs/decisions.md, "Conditional requests".

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Client } from '../kit/client.ts';
import { addOperator } from '../kit/operators.ts';
import { assertInvalid, assertRejected, auditEntriesOf } from '../kit/responses.ts';
import { startAnotherNode, startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const service = await startTestService({ after });
const { admin } = service;
const OTHER_TAG = `"${'A'.repeat(43)}="`;

interface Resource {
  readonly path: string;
  /** Bodies of PUT, each with another state. */
  readonly bodies: readonly object[];
  create(): Promise<unknown>;
  /** Whether PUT creates what does not exist. */
  readonly isCreatedByPut: boolean;
  readonly event: string;
}

let made = 0;
/** One of each kind that has tags, under a new name. */
const KINDS: Readonly<Record<string, () => Resource>> = {
  policy: () => {
    const path = `/api/v1/policies/p-${++made}`;
    const approval = { for: 'use', quorum: 2 };
    const fields = { principal: 'agent:a', actions: ['use', 'list'], limits: { concurrent: 2 }, approval };
    const bodies = ['a', 'b', 'c'].map((resource) => ({ ...fields, resources: [resource] }));
    return { path, bodies, create: () => admin.put(path, bodies[0]), isCreatedByPut: true, event: 'policy' };
  },
  targets: () => {
    const credential = `tagged/c-${++made}`;
    const path = `/api/v1/targets/${credential}`;
    const placement = { kind: 'header', name: 'X-Key', template: 'Key {value}' };
    const bodies = ['a', 'b', 'c'].map((host) => ({ targets: [{ origin: `https://${host}.example` }], placement }));
    const create = async (): Promise<unknown> => {
      await admin.post('/api/v1/credentials', { path: credential, value: 'v' });
      return admin.put(path, bodies[0]);
    };
    return { path, bodies, create, isCreatedByPut: true, event: 'target' };
  },
  operator: () => {
    const name = `op-${++made}`;
    const path = `/api/v1/operators/${name}`;
    const bodies = [['viewer'], ['editor'], ['approver']].map((roles) => ({ roles }));
    const create = () => admin.post('/api/v1/operators', { name, roles: ['viewer'] });
    return { path, bodies, create, isCreatedByPut: false, event: 'operator' };
  },
};

async function tagOf(client: Client, path: string): Promise<string> {
  const { status, headers } = await client.get(path);
  assert.equal(status, 200);
  const tag = headers.get('etag') ?? '';
  assert.match(tag, /^"[A-Za-z0-9+/]{43}="$/);
  return tag;
}

const put = (client: Client, path: string, body: unknown, tag: string) =>
  client.call('PUT', path, body, { 'if-match': tag });
const remove = (client: Client, path: string, tag: string) =>
  client.call('DELETE', path, undefined, { 'if-match': tag });

for (const [kind, make] of Object.entries(KINDS)) {
  test(`${kind}: a change succeeds with the tag of the present state only, and another state has another tag`, async () => {
    const { path, bodies, create, event } = make();
    await create();
    const first = await tagOf(admin, path);
    assert.equal(await tagOf(admin, path), first);
    assert.equal((await put(admin, path, bodies[1], `${OTHER_TAG}, W/${first},${first}`)).status, 200);
    const second = await tagOf(admin, path);
    assert.notEqual(second, first);
    const { body: before } = await admin.get(path);
    const entries = await auditEntriesOf(service, async () => {
      for (const tag of [first, OTHER_TAG, `W/${second}`, second.slice(1, -1), '"1"', '']) {
        for (const response of [await put(admin, path, bodies[2], tag), await remove(admin, path, tag)]) {
          assertRejected(response, 'PRECONDITION_FAILED');
          assert.deepEqual([response.body.error.current, response.headers.get('etag')], [before.data, second]);
        }
      }
    });
    const seen = new Set(entries.map(({ event_type, result }) => `${event_type} ${result}`));
    assert.equal(entries.length, 12);
    assert.ok(
      [...seen].every((text) => text.startsWith(`${event}.`) && text.endsWith(' denied')),
      [...seen].join(),
    );
    assert.deepEqual((await admin.get(path)).body, before);
    assert.equal((await put(admin, path, bodies[2], '*')).status, 200);
    assert.equal((await remove(admin, path, await tagOf(admin, path))).status, 204);
  });

  test(`${kind}: a change or deletion of what is gone is 412, and creates nothing`, async () => {
    const { path, bodies, create, isCreatedByPut } = make();
    await create();
    const tag = await tagOf(admin, path);
    assert.equal((await admin.delete(path)).status, 204);
    for (const condition of [tag, '*']) {
      for (const response of [await put(admin, path, bodies[1], condition), await remove(admin, path, condition)]) {
        assertRejected(response, 'PRECONDITION_FAILED');
        assert.deepEqual([response.body.error.current, response.headers.get('etag')], [null, null]);
      }
    }
    assert.equal((await admin.get(path)).status, 404);
    if (!isCreatedByPut) return;
    const asNew = { 'if-none-match': '*' };
    assert.equal((await admin.call('PUT', path, bodies[0], asNew)).status, 200);
    assertRejected(await admin.call('PUT', path, bodies[1], asNew), 'PRECONDITION_FAILED');
  });

  test(`${kind}: of changes at the same moment with one tag exactly one succeeds`, async () => {
    const { path, bodies, create } = make();
    await create();
    const tag = await tagOf(admin, path);
    const calls = Array.from({ length: 8 }, (_, n) =>
      n % 4 === 3 ? remove(admin, path, tag) : put(admin, path, bodies[1 + (n % 2)], tag),
    );
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    assert.deepEqual(
      statuses.filter((status) => status !== 412).length,
      1,
      `exactly one succeeds: ${statuses.join(' ')}`,
    );
  });

  test(`${kind}: a GET with the tag is 304, and other conditions are as without tags`, async () => {
    const { path, bodies, create } = make();
    await create();
    const tag = await tagOf(admin, path);
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const { status, text, headers } = await admin.call('GET', path, undefined, { 'if-none-match': known });
      assert.deepEqual([status, text, headers.get('etag')], [304, '', tag]);
    }
    assert.equal((await admin.call('GET', path, undefined, { 'if-none-match': OTHER_TAG })).status, 200);
    assert.equal((await admin.call('GET', path, undefined, { 'if-match': tag })).status, 200);
    assertRejected(await admin.call('GET', path, undefined, { 'if-match': OTHER_TAG }), 'PRECONDITION_FAILED');
    assertRejected(await admin.call('PUT', path, bodies[1], { 'if-none-match': tag }), 'PRECONDITION_FAILED');
    for (const malformed of ['*, *', '*,', `${tag}, *`, 'W/*', '"*', '"a" "b"', 'a', '']) {
      assertInvalid(await admin.call('PUT', path, bodies[1], { 'if-none-match': malformed }), 'If-None-Match');
    }
    assert.equal((await admin.call('PUT', path, bodies[1], { 'if-none-match': OTHER_TAG })).status, 200);
  });
}

test('an agent whose key was replaced, or that was registered again, is not deregistered with an earlier tag', async () => {
  const path = '/api/v1/agents/tagged';
  const register = () => admin.post('/api/v1/agents', { name: 'tagged' });
  await register();
  const first = await tagOf(admin, path);
  assert.equal((await admin.post(`${path}/rotate`, {})).status, 200);
  const rejected = await remove(admin, path, first);
  assertRejected(rejected, 'PRECONDITION_FAILED');
  const second = await tagOf(admin, path);
  assert.deepEqual([rejected.body.error.current.name, rejected.headers.get('etag')], ['tagged', second]);
  assert.equal((await remove(admin, path, second)).status, 204);
  await register();
  assertRejected(await remove(admin, path, second), 'PRECONDITION_FAILED');
  assert.equal((await remove(admin, path, '*')).status, 204);
});

test('a credential is deleted only with the tag of its newest version, which no retrieval changes', async () => {
  const path = '/api/v1/credentials/tagged/versions';
  const metadata = `${path}?view=metadata`;
  const store = (value: string) => admin.post('/api/v1/credentials', { path: 'tagged/versions', value });
  await store('one');
  const first = await tagOf(admin, metadata);
  const retrieved = await admin.get(path);
  assert.deepEqual([retrieved.status, retrieved.headers.get('etag')], [200, null]);
  assert.equal(await tagOf(admin, metadata), first);
  assert.equal((await admin.call('GET', metadata, undefined, { 'if-none-match': first })).status, 304);
  await store('two');
  const rejected = await remove(admin, path, first);
  assertRejected(rejected, 'PRECONDITION_FAILED');
  const second = await tagOf(admin, metadata);
  const { path: name, version } = rejected.body.error.current;
  assert.deepEqual([name, version, rejected.headers.get('etag')], ['tagged/versions', 2, second]);
  const agent = await service.agent('deleting', { 'tagged/*': ['delete'] });
  const blind = await remove(agent, path, first);
  assertRejected(blind, 'PRECONDITION_FAILED');
  assert.equal(blind.body.error.current, undefined);
  assert.equal((await remove(admin, path, second)).status, 204);
  await store('three');
  assertRejected(await remove(admin, path, second), 'PRECONDITION_FAILED');
});

test('routes of resources without tags ignore the headers', async () => {
  const path = '/api/v1/credentials/untagged/key';
  await admin.post('/api/v1/credentials', { path: 'untagged/key', value: 'v' });
  assert.equal((await admin.call('GET', path, undefined, { 'if-none-match': '*' })).status, 200);
  const [lease] = (await admin.get('/api/v1/leases?path=untagged/key')).body.data;
  assert.equal((await remove(admin, `/api/v1/leases/${lease.lease_id}`, OTHER_TAG)).status, 204);
});

test('a caller who may not make the change learns nothing of tags', async () => {
  const viewer = await addOperator(service, 'vera', ['viewer']);
  const agent = await service.agent('without-grants');
  for (const make of Object.values(KINDS)) {
    const { path, bodies, create } = make();
    await create();
    for (const tag of [await tagOf(admin, path), OTHER_TAG]) {
      for (const caller of [viewer, agent]) {
        assertRejected(await put(caller, path, bodies[1], tag), 'ACCESS_DENIED');
        assertRejected(await remove(caller, path, tag), 'ACCESS_DENIED');
      }
    }
  }
});

test('an agent that may write targets and not read them is not shown them', async () => {
  const { path, bodies, create } = KINDS['targets']?.() ?? assert.fail();
  await create();
  const writer = await service.agent('writer', { 'tagged/*': ['store'] });
  const response = await put(writer, path, bodies[1], OTHER_TAG);
  assertRejected(response, 'PRECONDITION_FAILED');
  assert.deepEqual([response.body.error.current, response.headers.get('etag')], [undefined, null]);
});

if (STORE === 'postgres') {
  test('a tag of one node holds on another, and of changes on two nodes exactly one succeeds', async (t) => {
    const other = await startAnotherNode(t, service);
    for (const make of Object.values(KINDS)) {
      const { path, bodies, create } = make();
      await create();
      const tag = await tagOf(other.admin, path);
      assert.equal(await tagOf(admin, path), tag);
      const calls = [put(admin, path, bodies[1], tag), put(other.admin, path, bodies[2], tag)];
      const statuses = (await Promise.all(calls)).map(({ status }) => status);
      assert.deepEqual(statuses.sort(), [200, 412]);
    }
    await other.stop();
  });
}
