// The real server under many times the load that it can serve: it rejects the excess, serves the rest and all other
// callers, keeps its memory bounded, and recovers afterwards.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMiB } from '../../bench/measurement.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { type ServiceProcess, startProcess } from '../kit/process.ts';
import type { FloodJob } from './overload-load.ts';
import { startFlood } from './overload-process.ts';
import { type Probe, startProbe } from './probe.ts';

const PATH = '/api/v1/credentials/demo/key';
/** Full load is reached with 64. So many that requests are rejected, and fewer than 500 from each address. */
const CONNECTIONS = 1800;
const FLOOD_MS = 6000;
/** On a busy machine the probe's few requests may all be served, so the load continues until some were rejected. */
const MAX_WAIT_MS = 240_000;
const ENOUGH = 5;

interface Scene {
  readonly service: ServiceProcess;
  readonly tokens: { readonly flood: string; readonly ci: string };
}

async function startScene(scope: Scope): Promise<Scene> {
  const dataDir = join(temporaryDirectory(scope), 'data');
  const service = await startProcess(scope, dataDir, ['--log-level', 'silent']);
  const admin = createClient(service.address, service.adminToken);
  const policy = { name: 'demo', principal: 'agent:*', resources: ['demo/*'], actions: ['retrieve'], max_ttl: 60 };
  assert.equal((await admin.post('/api/v1/credentials', { path: 'demo/key', value: 's3cret' })).status, 201);
  assert.equal((await admin.post('/api/v1/policies', policy)).status, 201);
  const logInNew = async (name: string): Promise<string> => {
    assert.equal((await admin.post('/api/v1/agents', { name })).status, 201);
    return logIn(service.address, name, readAgentKey(dataDir, name));
  };
  return { service, tokens: { flood: await logInNew('flood'), ci: await logInNew('ci') } };
}

function jobFor({ service, tokens }: Scene, ahead: number): FloodJob {
  const fromAddresses = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'];
  const connectionsEach = CONNECTIONS / fromAddresses.length;
  return {
    port: Number(new URL(service.address).port),
    fromAddresses,
    connectionsEach,
    ahead,
    token: tokens.flood,
    path: PATH,
  };
}

const countOf = (probe: Probe, statuses: readonly number[]): number =>
  probe.seen().filter(({ status }) => statuses.includes(status)).length;

/** Waits until a probe has seen enough of the statuses; at most `MAX_WAIT_MS`. */
async function seeEnough(probe: Probe, statuses: readonly number[]): Promise<void> {
  for (let waitedMs = 0; countOf(probe, statuses) < ENOUGH; waitedMs += 500) {
    assert.ok(waitedMs < MAX_WAIT_MS, `${statuses} was seen ${countOf(probe, statuses)} times`);
    await sleep(500);
  }
}

test('28 times the callers of full load: the excess is rejected, others are served, memory is bounded', async (t) => {
  const scene = await startScene(t);
  const { service, tokens } = scene;
  const probes = {
    flooding: startProbe(t, service.address, PATH, tokens.flood),
    other: startProbe(t, service.address, PATH, tokens.ci),
    health: startProbe(t, service.address, '/api/v1/health', null),
  };
  const flood = await startFlood(t, jobFor(scene, 1));
  for (const probe of Object.values(probes)) probe.forget();
  await seeEnough(probes.flooding, [503]);
  await sleep(FLOOD_MS / 2);
  const halfway = residentMiB(service.pid);
  await sleep(FLOOD_MS / 2);
  const end = residentMiB(service.pid);
  await seeEnough(probes.other, [200]);
  await seeEnough(probes.health, [200]);
  const refused = [probes.other, probes.health].map((probe) => countOf(probe, [0, 503]));
  const { byStatus, withoutRetryAfter, lostConnections } = await flood.end();
  t.diagnostic(`${JSON.stringify(byStatus)}; memory ${halfway.toFixed(0)} then ${end.toFixed(0)} MiB`);
  assert.deepEqual(Object.keys(byStatus).toSorted(), ['200', '503'], 'every answer is one of two');
  assert.equal(withoutRetryAfter, 0, 'each rejection has Retry-After');
  assert.equal(lostConnections, 0);
  assert.deepEqual(refused, [0, 0], 'another agent and health checks are never rejected');
  assert.ok(end < halfway * 1.25 + 16, `memory keeps growing: ${halfway} MiB, then ${end} MiB`);
  probes.flooding.forget();
  await seeEnough(probes.flooding, [200]);
});

test('connections that pipeline dozens of requests are cut off, and other callers are served', async (t) => {
  const scene = await startScene(t);
  const other = startProbe(t, scene.service.address, PATH, scene.tokens.ci);
  const flood = await startFlood(t, jobFor(scene, 24));
  other.forget();
  await seeEnough(other, [200]);
  const { lostConnections } = await flood.end();
  assert.ok(lostConnections > 0, 'connections are cut off');
  assert.equal(countOf(other, [0, 503]), 0);
});
