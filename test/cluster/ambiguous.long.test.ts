// A connection lost around COMMIT: the outcome is unknown, so that the caller gets 503 and never the value;
// the change took effect at most once, and a repeat with an Idempotency-Key is safe on any node.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import type { TestResponse } from '../kit/client.ts';
import { type Node, startCluster } from '../kit/cluster.ts';
import { newDatabase } from '../kit/database.ts';
import { type CutAt, startProxy } from '../kit/proxy.ts';
import { untilWell } from './crash-load.ts';

const scope = { after };
const url = await newDatabase(scope);
const proxy = await startProxy(scope, url);
/** The first node connects through the proxy, the other one directly. */
const { nodes } = await startCluster(scope, { nodes: 2, url, urlOf: (node) => (node === 0 ? proxy.url : url) });
const [cut, other] = nodes;
assert.ok(cut && other);

/** Whether the commit took effect; unknown for `during`. */
const HAPPENS: Readonly<Record<CutAt, boolean | null>> = { before: false, during: null, after: true };

async function versionsOf(path: string): Promise<number> {
  const { status, body } = (await other?.admin.get(`/api/v1/credentials/${path}?view=metadata`)) ?? {
    status: 0,
    body: null,
  };
  return status === 404 ? 0 : body.data.versions.length;
}

async function entriesOf(path: string, action: string): Promise<number> {
  const { body } = (await other?.admin.get(`/api/v1/audit?resource=${path}&action=${action}`)) ?? { body: null };
  return body.meta.total;
}

/** The node also commits in the background and may lose its connection there. */
const TRIES = 5;

/**
 * Loses the connection around a commit of the call, whose attempts have names. Resolves to the response and the name of
 * its attempt.
 */
async function loseCommit(
  at: CutAt,
  call: (name: string) => Promise<TestResponse>,
): Promise<{ answer: TestResponse; name: string }> {
  for (let tried = 1; ; tried++) {
    const name = `${at}-${tried}`;
    const done = proxy.cutNextCommit(at);
    const answer = await call(name);
    await done;
    if (answer.status === 503 || tried === TRIES) return { answer, name };
    await untilWell(nodes);
  }
}

for (const at of ['before', 'during', 'after'] as const) {
  test(`a connection lost ${at} COMMIT: a retrieval is 503 without a value, with one entry or none`, async () => {
    const { answer, name } = await loseCommit(at, async (tried) => {
      const stored = { path: `retrieved/${tried}`, value: 'the value' };
      assert.equal((await other.admin.post('/api/v1/credentials', stored)).status, 201);
      return cut.admin.get(`/api/v1/credentials/${stored.path}`);
    });
    const path = `retrieved/${name}`;
    assert.equal(answer.status, 503, answer.text);
    assert.doesNotMatch(answer.text, /the value/);
    assert.equal(answer.headers.get('retry-after'), '1');
    const entries = await entriesOf(path, 'retrieve');
    assert.equal(entries, HAPPENS[at] === null ? entries & 1 : Number(HAPPENS[at]));
    // The node recovers automatically.
    assert.equal((await cut.admin.get(`/api/v1/credentials/${path}`)).body.data.value, 'the value');
    assert.equal(await entriesOf(path, 'retrieve'), entries + 1);
  });

  test(`a connection lost ${at} COMMIT: a store repeated with its Idempotency-Key on another node is executed once`, async () => {
    const key = randomUUID();
    const store = ({ admin }: Node, name: string) =>
      admin.call(
        'POST',
        '/api/v1/credentials',
        { path: `stored/${name}`, value: 'v' },
        { 'idempotency-key': `${key}-${name}` },
      );
    const { answer, name } = await loseCommit(at, (tried) => store(cut, tried));
    const path = `stored/${name}`;
    assert.equal(answer.status, 503, answer.text);
    assert.match(answer.text, /It is unknown whether the request was recorded/);
    for (const node of [other, cut]) assert.equal((await store(node, name)).status, 201);
    assert.equal(await versionsOf(path), 1);
    assert.equal(await entriesOf(path, 'store'), 1);
  });
}

test('a connection lost between two batches: 503 without effect, and soon requests succeed again', async () => {
  assert.equal((await cut.admin.post('/api/v1/credentials', { path: 'idle/a', value: 'v' })).status, 201);
  proxy.close();
  const answer = await cut.admin.post('/api/v1/credentials', { path: 'idle/b', value: 'v' });
  assert.equal(answer.status, 503);
  assert.equal((await cut.admin.get('/api/v1/health')).body.data.status, 'failing');
  proxy.open();
  await untilWell([cut]);
  assert.equal((await cut.admin.post('/api/v1/credentials', { path: 'idle/b', value: 'v' })).status, 201);
  assert.equal(await versionsOf('idle/b'), 1);
  assert.equal((await cut.admin.get('/api/v1/health')).body.data.status, 'ok');
});

test('the chain is valid from every node afterwards', async () => {
  for (const { admin } of nodes) assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
});
