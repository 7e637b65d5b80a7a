// A check of the state finds nothing in a vault that was not altered outside: under load on each node, while values are
// sealed again, and after sweeps.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { logIn, readAgentKey } from '../kit/client.ts';
import { scaled } from '../kit/scale.ts';
import { startAnotherNode, startTestService, type TestService } from '../kit/service.ts';
import { STORE } from '../kit/stores.ts';

const LOAD_MS = scaled(3000, 60_000);
const WORKERS = 3;

/** The rows of one agent and its credentials, which come, change and go. */
async function work({ admin, address, dataDir, as }: TestService, other: TestService, name: string): Promise<void> {
  const done = async (answer: Promise<{ status: number; text: string }>): Promise<void> => {
    const { status, text } = await answer;
    assert.ok(status < 300, text);
  };
  await done(admin.post('/api/v1/agents', { name }));
  await done(other.admin.put(`/api/v1/policies/${name}`, policyOf(name)));
  const token = await logIn(address, name, readAgentKey(dataDir, name));
  const path = `${name}/key`;
  for (const value of ['one', 'two'.repeat(1000), 'three', 'four']) {
    await done(as(token).post('/api/v1/credentials', { path, value }));
    await done(other.admin.put(`/api/v1/targets/${path}`, { service: 'openai' }));
  }
  await done(admin.delete(`/api/v1/targets/${path}`));
  await done(admin.post('/api/v1/panic', { agent: name }));
  await done(other.as(await logIn(address, name, readAgentKey(dataDir, name))).delete('/auth/session'));
  await done(other.admin.delete(`/api/v1/credentials/${path}`));
  await done(other.admin.delete(`/api/v1/policies/${name}`));
  await done(admin.delete(`/api/v1/agents/${name}`));
}

const policyOf = (name: string) => ({
  principal: `agent:${name}`,
  resources: [`${name}/*`],
  actions: ['store', 'retrieve'],
});

test('nothing is found under load on each node, while data keys rotate', async (t) => {
  const service = await startTestService(t);
  const other = STORE === 'postgres' ? await startAnotherNode(t, service) : service;
  for (let at = 0; at < 100; at++) await service.admin.post('/api/v1/credentials', { path: `still/${at}`, value: 'v' });
  const until = performance.now() + LOAD_MS;
  let checks = 0;
  // On a busy machine one check may take longer than the load was meant to last.
  const isOver = (): boolean => performance.now() >= until && checks > 1;
  const repeat = async (what: () => Promise<unknown>): Promise<void> => {
    while (!isOver()) await what();
  };
  const check = async ({ admin }: TestService): Promise<void> => {
    const { body, text } = await admin.get('/api/v1/audit/verify?values=true');
    assert.deepEqual([body.data?.valid, body.data?.state.problems], [true, []], text);
  };
  await Promise.all([
    repeat(async () => {
      await check(service);
      checks += 1;
    }),
    repeat(() => check(other)),
    repeat(() => service.admin.post('/api/v1/key/rotate', { key: 'data' }).then(() => sleep(200))),
    ...Array.from({ length: WORKERS }, (_, worker) => repeat(() => work(service, other, `bot-${worker}`))),
  ]);
  t.diagnostic(`${checks} checks`);
  assert.ok(checks > 1);
});
