// A panic ends many leases and running uses in one operation.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AgentName } from '../../src/core/names.ts';
import type { Context } from '../../src/core/operation.ts';
import { retrieveCredential } from '../../src/vault/credentials/credentials.ts';
import { panic, readHeld } from '../../src/vault/exposure/panic.ts';
import { listLeases } from '../../src/vault/leases/leases.ts';
import { createPolicy } from '../../src/vault/policies/endpoints.ts';
import { Policy } from '../../src/vault/policies/policy.ts';
import { parseMethod, parseTargets } from '../../src/vault/use/target.ts';
import { putTargets } from '../../src/vault/use/target-operations.ts';
import { parseUrl } from '../../src/vault/use/upstream-url.ts';
import { startUpstream } from '../broker/upstream.ts';
import { scaled } from '../kit/scale.ts';
import { as, enrol, logIn, newAgentKey } from './agents-fixture.ts';
import { admin, CONNECTED, type OpenedVault, openVault, put, readLog, toPath, until } from './fixture.ts';

const LEASES = scaled(100, 1000);
const STREAMS = scaled(20, 200);
/** WHY not all: on a busy machine, the last connection might not be there in the time for one. */
const TOGETHER = 20;

async function addAgent(vault: OpenedVault, name: string): Promise<Context> {
  const key = newAgentKey();
  await enrol(vault, name, key);
  return as(vault, (await logIn(vault, name, key)).token.reveal());
}

test('a panic ends all leases and brokered requests of an agent; another agent keeps its own until a panic about all', async (t) => {
  const vault = await openVault(t);
  t.after(() => vault.uses.stop());
  const open = { count: 0, closed: 0 };
  const upstream = await startUpstream(t, (_request, response) => {
    // Answers slowly: the first bytes, and never the end.
    response.write('data: 1\n\n');
    open.count += 1;
    response.on('close', () => {
      open.closed += 1;
    });
  });
  const origin = `https://127.0.0.1:${upstream.port}`;
  const draft = { name: 'all', principal: 'agent:*', resources: ['*'], actions: ['retrieve', 'use'] };
  await vault.ledger.submit(createPolicy.operation(admin(), Policy.parse(draft)));
  await put(vault, 'seen');
  await put(vault, 'used');
  const allowedTargets = parseTargets([{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }]);
  const placement = { kind: 'bearer' as const };
  await vault.ledger.submit(putTargets(admin(), { path: toPath('used'), service: null, allowedTargets, placement }));
  const [suspect, other] = [await addAgent(vault, 'suspect'), await addAgent(vault, 'other')];
  const get = (context: Context) =>
    retrieveCredential(vault, context, { path: toPath('seen'), version: null, ttlSeconds: null });
  const request = { method: parseMethod('GET'), url: parseUrl(`${origin}/stream`) };
  const use = async (context: Context) => {
    const order = { path: toPath('used'), request, ttlSeconds: null, purpose: null };
    const call = { ...order, headers: [], openBody: () => null, bodyLength: 0, isUpgrade: false, baseUrl: null };
    const { body, result } = await vault.uses.start(context, call);
    body.on('error', () => undefined).resume();
    return result;
  };
  await Promise.all(Array.from({ length: LEASES }, () => get(suspect)));
  await get(other);
  const running: ReturnType<typeof use>[] = [];
  while (running.length < STREAMS) {
    for (let count = 0; count < TOGETHER; count++) running.push(use(suspect));
    await until(() => open.count === running.length, 'the upstream has the requests');
  }
  const kept = use(other);
  await until(() => open.count === STREAMS + 1, 'the upstream has every request');

  const held = await readHeld(vault, admin(), 'suspect' as AgentName, CONNECTED);
  const startedAt = performance.now();
  const ended = await panic(vault, admin(), 'suspect' as AgentName, CONNECTED);
  await until(() => open.closed >= STREAMS, 'the streams are cut');
  t.diagnostic(`${Math.round(performance.now() - startedAt)} ms`);
  assert.deepEqual([ended.leases, ended.sessions, ended.streams], [LEASES + STREAMS, 1, STREAMS]);
  assert.deepEqual(held, { leases: ended.leases, sessions: ended.sessions, streams: ended.streams });
  assert.deepEqual(
    [ended.rotate, ended.usedOnly].map((versions) => versions.map(({ path, version }) => [path, version])),
    [[['seen', 1]], [['used', 1]]],
  );
  await Promise.all(running);
  assert.equal(open.closed, STREAMS);
  await assert.rejects(get(suspect), { code: 'UNAUTHENTICATED' });

  assert.deepEqual(await readHeld(vault, admin(), null, CONNECTED), { leases: 2, sessions: 1, streams: 1 });
  const all = await panic(vault, admin(), null, CONNECTED);
  assert.deepEqual([all.leases, all.sessions, all.streams], [2, 1, 1]);
  await kept;
  await vault.uses.stop();
  const filter = { agentName: null, path: null, status: 'active' as const };
  assert.deepEqual((await listLeases(vault, admin(), filter, { limit: 1, offset: 0 }, CONNECTED)).meta?.total, 0);
  const log = await readLog(vault.real);
  const results = log.filter(({ event_type }) => event_type === 'credential.use_result');
  assert.equal(results.length, STREAMS + 1);
  assert.ok(results.every((entry) => entry.ended === 'revoked'));
});
