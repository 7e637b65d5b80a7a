// What needs attention, each kind with a real vault. SOURCE: docs/api.md, "Overview".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { dataOf } from '../kit/responses.ts';
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

async function read(kind: string): Promise<Item[]> {
  const items: Item[] = dataOf(await admin.get('/api/v1/attention'), 200, 'kind subject text count since');
  return items.filter((item) => item.kind === kind);
}
const enter = async (name: string) => createClient(address, await logIn(address, name, readAgentKey(dataDir, name)));

before(async () => {
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
});

test('nothing of a young vault is listed', async () => {
  assert.deepEqual((await admin.get('/api/v1/attention')).body.data, []);
});

test('an agent that is denied the same again and again', async () => {
  const busy = await enter('busy');
  // No policy grants it.
  for (let number = 0; number < 6; number++) assert.equal((await busy.get('/api/v1/tree')).status, 403);
  const deny = () => busy.get('/api/v1/credentials/other/key');
  for (let number = 0; number < 4; number++) await deny();
  assert.deepEqual(await read('denied_repeatedly'), []);
  await busy.get('/api/v1/credentials/other/another');
  assert.deepEqual(await read('denied_repeatedly'), []);
  await deny();
  const [item, ...more] = await read('denied_repeatedly');
  assert.deepEqual([item?.subject, item?.count, more], ['agent:busy', 5, []]);
  assert.match(item?.text ?? '', /^busy was denied other\/key 5 times in the last hour\./);
  await clock.move(61 * MINUTE_MS);
  assert.deepEqual(await read('denied_repeatedly'), []);
});

test('a long lease that ends soon', async () => {
  const busy = await enter('busy');
  await busy.get('/api/v1/credentials/old/retrieved');
  await busy.get('/api/v1/credentials/old/retrieved');
  const short = await busy.get('/api/v1/credentials/old/retrieved?ttl=60');
  assert.deepEqual(await read('lease_expiring'), []);
  await clock.moveTo(short.body.data.expires_at);
  assert.deepEqual(await read('lease_expiring'), []);
  await clock.move(55 * MINUTE_MS);
  const [item, ...more] = await read('lease_expiring');
  assert.deepEqual([item?.subject, item?.count, more], ['old/retrieved', 2, []]);
  assert.match(item?.text ?? '', /^2 leases of busy end in (?:4|5) minutes\./);
  await admin.post('/api/v1/leases/revoke', { agent: 'busy' });
  assert.deepEqual(await read('lease_expiring'), []);
});

test('a credential that was stored a month ago and never retrieved or used', async () => {
  assert.deepEqual(await read('credential_unused'), []);
  await clock.move(31 * DAY_MS);
  const [item, ...more] = await read('credential_unused');
  assert.deepEqual([item?.subject, more], ['old/unused', []]);
  assert.match(item?.text ?? '', /^Stored 31 days ago and never retrieved or used\./);
  await admin.get('/api/v1/credentials/old/unused');
  assert.deepEqual(await read('credential_unused'), []);
});
