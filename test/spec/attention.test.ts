// What needs attention, each kind with a real vault. SOURCE: docs/api.md, "Overview".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { lateItems } from '../../src/vault/attention/lateness.ts';
import { startUpstream } from '../broker/upstream.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const clock = startTestClock({ after });
const service = await startTestService({ after });
const { admin, address, dataDir } = service;
const upstream = await startUpstream({ after }, (_, response) => response.end('ok'));

interface Item {
  readonly kind: string;
  readonly subject: string;
  readonly text: string;
  readonly count: number | null;
  readonly since: string | null;
}

/** Reads until the items are as expected: a result that took long is shown for some time. */
async function read(isExpected: (items: readonly Item[]) => boolean = () => true): Promise<Item[]> {
  const endsAt = performance.now() + 120_000;
  for (;;) {
    const { status, body } = await admin.get('/api/v1/attention');
    assert.equal(status, 200);
    const { items, complete } = body.data;
    if ((complete && isExpected(items)) || performance.now() > endsAt) return items;
    await sleep(100);
  }
}
const ofKind = (items: readonly Item[], kind: string) => items.filter((item) => item.kind === kind);
const subjects = (items: readonly Item[], kind: string) => ofKind(items, kind).map(({ subject }) => subject);
async function shows(kind: string, expected: readonly string[]): Promise<void> {
  const items = await read((found) => isDeepStrictEqual(subjects(found, kind), expected));
  assert.deepEqual(subjects(items, kind), expected);
}
/** The policies of `before` that grant nothing: a result that shows them was made after it. */
const IDLE_POLICIES = ['policy:no-operator', 'policy:no-path', 'policy:no-principal'];
const isAfterBefore = (items: readonly Item[]) =>
  isDeepStrictEqual(subjects(items, 'policy_grants_nothing'), IDLE_POLICIES);
/** Once there is one. */
const itemsOf = async (kind: string) => ofKind(await read((found) => ofKind(found, kind).length > 0), kind);
const enter = async (name: string) => createClient(address, await logIn(address, name, readAgentKey(dataDir, name)));

before(async () => {
  assert.deepEqual(await read(), [], 'a new vault needs no attention');
  for (const path of ['old/unused', 'old/retrieved', 'old/used']) {
    await admin.post('/api/v1/credentials', { path, value: 'a value' });
  }
  const origin = `https://127.0.0.1:${upstream.port}`;
  const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
  await admin.put('/api/v1/targets/old/used', { targets, placement: { kind: 'bearer' } });
  assert.equal((await admin.post('/api/v1/use', { path: 'old/used', method: 'GET', url: `${origin}/` })).status, 200);
  await admin.get('/api/v1/credentials/old/retrieved');
  await service.agent('busy', { 'old/*': ['retrieve'] });
  await admin.put('/api/v1/policies/busy-0', {
    principal: 'agent:busy',
    resources: ['old/*'],
    actions: ['retrieve'],
    max_ttl: 3600,
  });
  await admin.post('/api/v1/agents', { name: 'silent' });
  const policy = { principal: 'agent:busy', resources: ['old/*'], actions: ['list'] };
  for (const [name, fields] of Object.entries({
    'no-principal': { principal: 'agent:gone-*' },
    'no-operator': { principal: 'operator:gone' },
    'no-path': { resources: ['none/*', 'old'] },
    'to-store': { resources: ['none/*'], actions: ['store'] },
    'one-path': { resources: ['none/*', 'old/used'] },
  })) {
    assert.equal((await admin.post('/api/v1/policies', { name, ...policy, ...fields })).status, 201, name);
  }
});

test('nothing of a young vault is old', async () => {
  const items = await read(isAfterBefore);
  assert.equal(isAfterBefore(items), true);
  for (const kind of ['credential_unused', 'agent_never_logged_in', 'backup_late', 'lease_expiring']) {
    assert.deepEqual(subjects(items, kind), [], kind);
  }
});

test('policies that grant nothing, with what is missing', async () => {
  const items = ofKind(await read(isAfterBefore), 'policy_grants_nothing');
  assert.deepEqual(
    items.map(({ subject, text }) => [subject, /^It names \S+, which/.test(text)]),
    [
      ['policy:no-operator', true],
      ['policy:no-path', false],
      ['policy:no-principal', true],
    ],
  );
});

test('an agent that is denied the same again and again', async () => {
  const busy = await enter('busy');
  const deny = () => busy.get('/api/v1/credentials/other/key');
  for (let number = 0; number < 4; number++) await deny();
  await shows('denied_repeatedly', []);
  await busy.get('/api/v1/credentials/other/another');
  await shows('denied_repeatedly', []);
  await deny();
  const [item, ...more] = await itemsOf('denied_repeatedly');
  assert.deepEqual([item?.subject, item?.count, more], ['agent:busy', 5, []]);
  assert.match(item?.text ?? '', /^busy was denied other\/key 5 times in the last hour\./);
  await clock.move(61 * MINUTE_MS);
  await shows('denied_repeatedly', []);
});

test('a long lease that ends soon', async () => {
  const busy = await enter('busy');
  await busy.get('/api/v1/credentials/old/retrieved');
  await busy.get('/api/v1/credentials/old/retrieved');
  const short = await busy.get('/api/v1/credentials/old/retrieved?ttl=60');
  await shows('lease_expiring', []);
  await clock.moveTo(short.body.data.expires_at);
  await shows('lease_expiring', []);
  await clock.move(55 * MINUTE_MS);
  const [item, ...more] = await itemsOf('lease_expiring');
  assert.deepEqual([item?.subject, item?.count, more], ['old/retrieved', 2, []]);
  assert.match(item?.text ?? '', /^2 leases of busy end in (?:4|5) minutes\./);
  await admin.post('/api/v1/leases/revoke', { agent: 'busy' });
  await shows('lease_expiring', []);
});

test('an agent that never logged in, and a vault without a backup, after days', async () => {
  await clock.move(2 * DAY_MS);
  await shows('agent_never_logged_in', ['agent:silent']);
  await enter('silent');
  await shows('agent_never_logged_in', []);
  // The newest backup is searched in the background.
  const [item] = await itemsOf('backup_late');
  assert.match(item?.text ?? '', /^The log has no complete backup\. Run leasehold backup/);
});

test('a credential that was stored a month ago and never retrieved or used', async () => {
  await shows('credential_unused', []);
  await clock.move(29 * DAY_MS);
  const [item, ...more] = await itemsOf('credential_unused');
  assert.deepEqual([item?.subject, more], ['old/unused', []]);
  assert.match(item?.text ?? '', /^Stored 31 days ago and never retrieved or used\./);
  await admin.get('/api/v1/credentials/old/unused');
  await shows('credential_unused', []);
});

test('anchors, checkpoints and backups are late by the limits of the alerts', () => {
  const now = Date.parse('2026-03-01T00:00:00Z');
  const inTime = { anchorSeconds: 30, deliveries: [{ label: 'webhook', waitingSeconds: 300 }], backupAt: now - DAY_MS };
  const ages = { ...inTime, unsignedSince: now - 300_000, begunAt: now - 9 * DAY_MS };
  assert.deepEqual(lateItems(ages, now), []);
  const kinds = (late: Partial<typeof ages> | { backupAt: null }) => {
    const items = lateItems({ ...ages, ...late }, now);
    return items.map(({ kind, since }) => [kind, (now - (since ?? 0)) / 1000]);
  };
  assert.deepEqual(kinds({ anchorSeconds: 31 }), [['anchor_late', 31]]);
  assert.deepEqual(kinds({ unsignedSince: now - 301_000 }), [['checkpoint_late', 301]]);
  assert.deepEqual(kinds({ deliveries: [{ label: 'webhook', waitingSeconds: 301 }] }), [['checkpoint_late', 301]]);
  assert.deepEqual(kinds({ backupAt: now - 3 * DAY_MS }), [['backup_late', (3 * DAY_MS) / 1000]]);
  assert.deepEqual(kinds({ backupAt: null }), [['backup_late', (9 * DAY_MS) / 1000]]);
});
