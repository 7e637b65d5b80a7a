// Two servers that accept writes: an old primary that comes back after a failover, and logs that differ. A node reads
// from the right one only.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { describeHost, parseAddress } from '../../src/store/postgres/database-url.ts';
import { chooseHost } from '../../src/store/postgres/host-choice.ts';
import type { TestResponse } from '../kit/client.ts';
import { startNodes } from '../kit/cluster.ts';
import { startPostgres } from '../kit/postgres.ts';
import type { PostgresServer } from '../kit/postmaster.ts';
import { startProxy } from '../kit/proxy.ts';
import { scaled } from '../kit/scale.ts';
import type { TestService } from '../kit/service.ts';
import { startStandby } from '../kit/standby.ts';

const READS = scaled(2, 10);

function urlOf(...servers: readonly PostgresServer[]): string {
  const [first] = servers;
  assert.ok(first);
  const { username, password, pathname } = new URL(first.url());
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(',');
  return `postgres://${username}:${password}@${hosts}${pathname}`;
}

async function store({ admin }: TestService, path: string): Promise<void> {
  const { status, text } = await admin.post('/api/v1/credentials', { path, value: 'v' });
  assert.equal(status, 201, text);
}

/** Ends the connections of the nodes, so that they connect again. */
async function disconnect(server: PostgresServer): Promise<void> {
  await server.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'leasehold%' AND pid <> pg_backend_pid()`,
  );
}

const countOf = async (server: PostgresServer): Promise<number> =>
  Number((await server.query('SELECT count(*)::int AS n FROM leasehold.audit_entries'))[0]?.['n']);

/** Calls whose responses show the end of the audit log, each with a reader of the last entry. */
const READERS: readonly (readonly [method: string, path: string, endOf: (answer: TestResponse) => number])[] = [
  ['GET', '/api/v1/audit?limit=1', ({ body }) => body.meta.total],
  ['GET', '/api/v1/audit/verify', ({ body }) => body.data.entries],
  ['GET', '/api/v1/audit/export', ({ text }) => text.match(/"seq":/g)?.length ?? 0],
  ['POST', '/api/v1/backup', ({ text }) => JSON.parse(text.split('\n')[0] ?? '').log_end.seq],
];

async function assertRejected({ admin }: TestService): Promise<void> {
  for (const [method, path] of READERS) {
    const { status, headers, text } = await admin.call(method, path, method === 'POST' ? {} : undefined);
    assert.deepEqual([status, Number(headers.get('retry-after')) > 0], [503, true], text);
  }
}

/** Calls every reader over new connections. Each answer is complete or 503; returns how many are complete. */
async function readAll(node: TestService, server: PostgresServer): Promise<number> {
  let complete = 0;
  for (const [method, path, endOf] of READERS) {
    const known = await countOf(server);
    await disconnect(server);
    const answer = await node.admin.call(method, path, method === 'POST' ? {} : undefined);
    if (answer.status === 503) continue;
    assert.equal(answer.status, 200, answer.text);
    assert.ok(endOf(answer) >= known, `${path} ends at ${endOf(answer)}, and the log at ${known}`);
    complete += 1;
  }
  return complete;
}

async function untilOk({ admin }: TestService): Promise<void> {
  while ((await admin.get('/api/v1/health')).status !== 200) await admin.get('/api/v1/agents');
}

// A failover that left no entry: the logs of the old primary, which comes back, and of the promoted server are equal.
const old = await startPostgres({ after });
const { server: promoted, promote } = await startStandby({ after }, old, { name: 'second', isSynchronous: false });
const nodes = await startNodes({ after }, { nodes: 1, url: urlOf(old, promoted) });
const [first] = nodes.nodes;
assert.ok(first);
await store(first, 'before');
await first.stop();
await old.stop();
await promote();
await old.start();
const node = await nodes.start();
let stored = 1;

test('of two servers with equal logs a node uses the one that was promoted last', async () => {
  const before = await countOf(old);
  await store(node, 'next');
  stored += 1;
  assert.equal(await countOf(old), before);
  assert.ok((await countOf(promoted)) > before);
});

test('lists, exports, verifications and backups never come from the old primary, also not over new connections', async () => {
  const before = await countOf(old);
  const started = await nodes.start();
  for (const each of [node, started]) {
    let complete = 0;
    for (let count = 0; count < READS; count++) complete += await readAll(each, promoted);
    assert.ok(complete > 0);
    await untilOk(each);
    assert.equal((await each.admin.get('/api/v1/credentials?limit=1')).body.meta.total, stored);
  }
  await started.stop();
  assert.equal(await countOf(old), before);
});

test('a server that stops answering in the middle of the choice does not keep it waiting', async (t) => {
  const proxy = await startProxy(t, old.url());
  // What kind of server it is and the end of its log are read without this table.
  const held = old.query('BEGIN; LOCK TABLE leasehold.audit_entries; SELECT pg_sleep(600); COMMIT');
  const ended = held.catch(() => undefined);
  const lock = `SELECT 1 FROM pg_locks WHERE relation = 'leasehold.audit_entries'::regclass AND granted =`;
  while ((await old.query(`${lock} true AND mode = 'AccessExclusiveLock'`)).length === 0);
  const [last] = await promoted.query('SELECT seq, hmac FROM leasehold.audit_entries ORDER BY seq DESC LIMIT 1');
  const seen = { seq: Number(last?.['seq']), hmac: String(last?.['hmac']) };
  const hosts = urlOf(old, promoted).replace(String(old.port), new URL(proxy.url).port);
  let isChosen = false;
  const choice = chooseHost(parseAddress(hosts), seen, null).finally(() => {
    isChosen = true;
  });
  // PostgreSQL ends the wait for the lock after three seconds.
  while (!isChosen && (await old.query(`${lock} false`)).length === 0);
  proxy.swallow();
  await old.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%(600)%' AND pid <> pg_backend_pid()`,
  );
  await ended;
  const { chosen, unanswered } = await choice;
  assert.equal(describeHost(chosen.host), `127.0.0.1:${promoted.port}`);
  assert.deepEqual(unanswered, [new URL(proxy.url).host]);
});

test('a name that moves to a server that is behind gets 503, until it is back at the right one', async (t) => {
  const proxy = await startProxy(t, promoted.url());
  const moved = await nodes.start(undefined, [], proxy.url);
  proxy.redirect(old.url());
  // Only new connections move, such as that of a backup.
  assert.equal((await moved.admin.post('/api/v1/backup', {})).status, 503);
  await disconnect(promoted);
  await assertRejected(moved);
  proxy.redirect(promoted.url());
  await untilOk(moved);
  await moved.stop();
});

test('with the right server down, a node that has seen its entries answers nothing from the old one, and does not start on it', async () => {
  const stopped = await nodes.start();
  await stopped.stop();
  await untilOk(node);
  await promoted.stop();
  await assertRejected(node);
  await assert.rejects(
    nodes.start(stopped.dataDir),
    new RegExp(`has seen entry \\d+.* 127.0.0.1:${promoted.port} did not respond and may have them`),
  );
  await promoted.start();
  await untilOk(node);
  assert.equal((await node.admin.get('/api/v1/credentials?limit=1')).body.meta.total, stored);
});

test('of two servers whose logs differ a new node uses none, and one that has seen an entry uses the server that has it', async () => {
  const astray = await nodes.start(undefined, [], old.url());
  await store(astray, 'only-old');
  await astray.stop();
  await assert.rejects(
    nodes.start(),
    /2 servers accept writes, and their logs have different entries: 127\.0\.0\.1:\d+ ends at entry \d+, 127/,
  );
  await readAll(node, promoted);
  await untilOk(node);
  const paths = (await node.admin.get('/api/v1/credentials')).body.data.map(({ path }: { path: string }) => path);
  assert.deepEqual(paths, ['before', 'next']);
});
