// GET /metrics over a real socket, parsed strictly: the counters equal the requests of the callers.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, suite, test } from 'node:test';
import { RouteMeasures } from '../../src/http/request-measures.ts';
import { METRICS } from '../../src/server/metrics/metrics.ts';
import { startUpstream } from '../broker/upstream.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { parseMetrics, seriesValue } from '../kit/prometheus-text.ts';
import { assertRejected } from '../kit/responses.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const CREDENTIALS = '/api/v1/credentials';
const shared = await startTestService({ after }, ['--log-stream', `file:${temporaryDirectory({ after })}/log`]);

test('every declared metric is on the page with its type, help and labels, and no other of ours', async () => {
  const { address, admin } = shared;
  // Otherwise no backup has an age.
  assert.equal((await admin.post('/api/v1/backup', {})).status, 200);
  await until(async () => (await admin.get('/api/v1/audit?event_type=service.backup_result')).body.data.length > 0);
  // The first scrape starts a count, and a busy machine counts for a while.
  await until(async () => {
    const page = await scrape(address);
    const late = ['leasehold_backup_age_seconds', 'leasehold_checkpoint_age_seconds'];
    return late.every((name) => (page.get(name)?.series.length ?? 0) > 0);
  });
  const { length } = (await admin.get('/api/v1/agents')).body.data;
  assert.equal(length, 0);
  const families = await scrape(address);
  const ours = [...families.values()].filter(({ name }) => name.startsWith('leasehold_'));
  assert.deepEqual(
    ours.map(({ name, type, help }) => ({ name, kind: type, help })),
    METRICS.map(({ name, kind, help }) => ({ name, kind, help })),
  );
  for (const metric of METRICS) {
    const { labels } = metric;
    for (const series of families.get(metric.name)?.series ?? []) {
      const { le: _, ...own } = series.labels;
      assert.deepEqual(Object.keys(own).sort(), [...labels].sort(), metric.name);
    }
  }
  const isEmpty = (name: string): boolean => families.get(name)?.series.length === 0;
  const ofOtherStore = STORE === 'sqlite' ? /^leasehold_database_/ : /^leasehold_wal_/;
  assert.deepEqual(
    METRICS.filter(({ name }) => isEmpty(name)).map(({ name }) => name),
    METRICS.filter(({ name }) => ofOtherStore.test(name)).map(({ name }) => name),
  );
  assert.ok(seriesValue(families, 'process_resident_memory_bytes') > 0);
  assert.ok((families.get('nodejs_eventloop_lag_p99_seconds')?.series.length ?? 0) > 0);
});

test('retrievals, denials, logins, leases and sessions are counted where they happen', async () => {
  const { address, admin, agent, anonymous } = shared;
  await admin.post(CREDENTIALS, { path: 'a/b', value: 'a value' });
  const reader = await agent('reader', { 'a/*': ['retrieve'] });
  const before = await scrape(address);
  const rejected = [
    await reader.get(`${CREDENTIALS}/b/c`),
    await reader.delete(`${CREDENTIALS}/a/b`),
    await reader.get('/api/v1/policies'),
  ];
  assert.deepEqual(
    rejected.map(({ status }) => status),
    [403, 403, 403],
  );
  for (let number = 0; number < 5; number++) await reader.get(`${CREDENTIALS}/a/b`);
  await reader.get(`${CREDENTIALS}/a/none`);
  await anonymous.get(CREDENTIALS);
  await anonymous.get('/nowhere');
  const { body } = await anonymous.post('/auth/challenge', { agent_name: 'reader' });
  const { challenge_id } = body.data;
  await anonymous.post('/auth/verify', { challenge_id, agent_name: 'reader', signature: 'AAAA' });
  const after = await scrape(address);
  const grown = (name: string, labels: Record<string, string> = {}): number =>
    seriesValue(after, name, labels) - seriesValue(before, name, labels);
  const entries = (event_type: string, result: string) =>
    grown('leasehold_audit_entries_total', { event_type, result });
  assert.equal(entries('credential.retrieve', 'allowed'), 5);
  assert.equal(entries('credential.retrieve', 'not_found'), 1);
  assert.equal(grown('leasehold_leases_issued_total', { kind: 'retrieve' }), 5);
  const classes = { no_path: 1, no_action: 1, admin_only: 1, login: 1, no_policy: 0, other: 0 };
  for (const [each, count] of Object.entries(classes))
    assert.equal(grown('leasehold_denials_total', { class: each }), count, each);
  assert.equal(grown('leasehold_logins_total', { result: 'failed' }), 1);
  assert.equal(seriesValue(before, 'leasehold_logins_total', { result: 'ok' }), 1);
  assert.equal(seriesValue(before, 'leasehold_values_sealed_total'), 1);
  assert.equal(seriesValue(after, 'leasehold_agents'), 1);
  assert.equal(seriesValue(after, 'leasehold_policies'), 1);
  const route = { method: 'GET', route: `${CREDENTIALS}/{path}` };
  assert.equal(grown('leasehold_http_requests_total', { ...route, status: '200' }), 5);
  assert.equal(grown('leasehold_http_requests_total', { ...route, status: '404' }), 1);
  assert.equal(grown('leasehold_http_request_duration_seconds_count', route), 7);
  assert.equal(grown('leasehold_http_requests_total', { method: '*', route: 'none', status: '404' }), 1);
  assert.equal(grown('leasehold_http_rejections_total', { code: 'UNAUTHENTICATED' }), 1);
  assert.equal(seriesValue(after, 'leasehold_log_seq'), (await admin.get('/api/v1/audit?limit=1')).body.meta.total);
});

test('budgets, limits and denials without an entry are counted', async (t) => {
  const flags = ['--denials-per-minute', '2', '--leases-per-hour', '3'];
  const { address, admin, agent } = await startTestService(t, flags);
  await admin.post(CREDENTIALS, { path: 'a/b', value: 'a value' });
  const greedy = await agent('greedy', { 'a/*': ['retrieve'] });
  for (let number = 0; number < 5; number++) await greedy.get(`${CREDENTIALS}/b/c`);
  for (let number = 0; number < 5; number++) await greedy.get(`${CREDENTIALS}/a/b`);
  const families = await scrape(address);
  assert.equal(seriesValue(families, 'leasehold_denials_unrecorded_total'), 3);
  assert.equal(seriesValue(families, 'leasehold_denials_total', { class: 'no_path' }), 2);
  assert.equal(seriesValue(families, 'leasehold_budget_rejections_total', { budget: 'leases' }), 2);
});

test('uses are counted with their ends, bytes, redactions and limits', async (t) => {
  const secret = 'sk-test-0123456789abcdefghijklmnop';
  const upstream = await startUpstream(t, (_, response) => response.end(`you sent ${secret}`));
  const origin = `https://127.0.0.1:${upstream.port}`;
  const { address, admin, agent } = shared;
  await admin.post(CREDENTIALS, { path: 'a/b', value: secret });
  const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
  await admin.put('/api/v1/targets/a/b', { targets, placement: { kind: 'bearer' } });
  const user = await agent('user');
  const limits = { uses_per_hour: 2 };
  const policy = { name: 'uses', principal: 'agent:user', resources: ['a/*'], actions: ['use'], limits };
  assert.equal((await admin.post('/api/v1/policies', policy)).status, 201);
  const statuses: number[] = [];
  for (let number = 0; number < 3; number++)
    statuses.push((await user.post('/api/v1/use', { path: 'a/b', method: 'GET', url: `${origin}/` })).status);
  assert.deepEqual(statuses, [200, 200, 429]);
  const families = await scrape(address);
  assert.equal(seriesValue(families, 'leasehold_uses_started_total'), 2);
  assert.equal(seriesValue(families, 'leasehold_uses_ended_total', { ended: 'complete' }), 2);
  assert.equal(seriesValue(families, 'leasehold_uses_running'), 0);
  assert.equal(seriesValue(families, 'leasehold_use_redactions_total'), 2);
  assert.ok(seriesValue(families, 'leasehold_use_bytes_total', { direction: 'out' }) > 0);
  assert.equal(seriesValue(families, 'leasehold_use_limit_rejections_total', { limit: 'uses_per_hour' }), 1);
  assert.equal(seriesValue(families, 'leasehold_broker_starts_total'), 1);
});

test('no label has the name of an agent, path, policy or address, and a scrape records nothing', async () => {
  const { address, admin, agent } = shared;
  await admin.post(CREDENTIALS, { path: 'distinct/path', value: 'a value' });
  const named = await agent('distinct-agent', { 'distinct/*': ['retrieve'] });
  for (const path of ['distinct/path', 'distinct/none', 'elsewhere/distinct'])
    await named.get(`${CREDENTIALS}/${path}`);
  await named.get('/api/v1/policies/distinct-policy');
  const total = async () => (await admin.get('/api/v1/audit?limit=1')).body.meta.total;
  const before = await total();
  await scrape(address, { authorization: 'Bearer of nothing' });
  const text = await (await fetch(`${address}/metrics`)).text();
  assert.ok(!text.includes('distinct') && !text.includes('127.0.0.1'));
  assert.equal(await total(), before);
});

suite('who may read the metrics', () => {
  test('with a token: only its owner, from wherever; the administrator is not', async (t) => {
    const file = join(temporaryDirectory(t), 'token');
    const token = 'm'.repeat(40);
    writeFileSync(file, `${token}\n`, { mode: 0o600 });
    const { address, as, admin, anonymous } = await startTestService(t, ['--metrics-token-file', file]);
    for (const client of [anonymous, admin, as('n'.repeat(40)), as(`${token}m`)])
      assertRejected(await client.get('/metrics'), 'UNAUTHENTICATED');
    await scrape(address, { authorization: `Bearer ${token}` });
    assertRejected(await as(token).get(CREDENTIALS), 'UNAUTHENTICATED');
  });

  test('without a token: clients on the same machine, but not what a proxy forwards', async (t) => {
    const { address, anonymous } = await startTestService(t);
    await scrape(address);
    for (const header of ['x-forwarded-for', 'forwarded', 'x-forwarded-proto', 'via', 'x-real-ip'])
      assertRejected(await anonymous.call('GET', '/metrics', undefined, { [header]: '127.0.0.1' }), 'ACCESS_DENIED');
  });

  test('without a token: nobody, where other machines reach the server, perhaps by a forwarder on this one', async (t) => {
    for (const flags of [
      ['--public-name', 'vault.example.org'],
      ['--trusted-proxy', '127.0.0.1'],
      ['--listen', '0.0.0.0:0', '--insecure-http'],
    ]) {
      const { address } = await startTestService(t, flags);
      const { status } = await fetch(`${address.replace('0.0.0.0', '127.0.0.1')}/metrics`);
      assert.equal(status, 403, flags.join(' '));
    }
  });

  test('without a token: a trusted proxy that says 127.0.0.1 gets nothing either', async (t) => {
    const { anonymous } = await startTestService(t, ['--trusted-proxy', '127.0.0.1']);
    const headers = { 'x-forwarded-for': '127.0.0.1' };
    assertRejected(await anonymous.call('GET', '/metrics', undefined, headers), 'ACCESS_DENIED');
  });

  test('without a token: clients of a Unix socket', async (t) => {
    const socketPath = join(temporaryDirectory(t), 'socket');
    await startTestService(t, ['--listen', `unix:${socketPath}`]);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    request({ socketPath, path: '/metrics', headers: { host: 'localhost' } }, async (response) => {
      resolve((await response.setEncoding('utf8').toArray()).join(''));
    })
      .on('error', reject)
      .end();
    assert.ok(parseMetrics(await promise).has('leasehold_build_info'));
  });
});

test('statuses that an upstream makes up are one series', () => {
  const measures = new RouteMeasures('*', '/use/{path}/-/{rest}');
  for (let status = 600; status < 1000; status++) measures.ended(status, 1);
  measures.ended(200, 1);
  assert.deepEqual(
    [...measures.statuses],
    [
      [0, 400],
      [200, 1],
    ],
  );
});

test('the first count includes leases of both kinds and sessions, without those that have ended', async (t) => {
  const { address, admin, agent } = await startTestService(t);
  const targets = [{ origin: 'https://api.example.com' }];
  await admin.post('/api/v1/credentials', { path: 'a/b', value: 'a value' });
  await admin.put('/api/v1/targets/a/b', { targets, placement: { kind: 'bearer' } });
  const client = await agent('client', { 'a/*': ['retrieve', 'use'] });
  const other = await agent('other');
  for (let number = 0; number < 4; number++) await client.get('/api/v1/credentials/a/b');
  assert.equal((await client.post('/api/v1/leases/use', { path: 'a/b' })).status, 201);
  const { lease_id: id } = (await client.get('/api/v1/credentials/a/b')).body.data;
  await client.delete(`/api/v1/leases/${id}`);
  await other.delete('/auth/session');
  const families = async () => scrape(address);
  const hasCounted = async () => ((await families()).get('leasehold_sessions_open')?.series.length ?? 0) > 0;
  await until(hasCounted);
  const page = await families();
  assert.equal(seriesValue(page, 'leasehold_leases_active', { kind: 'retrieve' }), 4);
  assert.equal(seriesValue(page, 'leasehold_leases_active', { kind: 'use' }), 1);
  assert.equal(seriesValue(page, 'leasehold_sessions_open'), 1);
  assert.ok(seriesValue(page, 'leasehold_inventory_age_seconds') < 60);
});
