// Kills the service in the middle of uses. No request may have reached the upstream without its entry in the log, which
// must verify. `SEED=n` repeats the moments. SOURCE: docs/architecture.md, "How crashes are survived".

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startUpstream } from '../broker/upstream.ts';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import { Dice, newSeed } from '../kit/dice.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { type ServiceProcess, startProcess } from '../kit/process.ts';
import { scaled } from '../kit/scale.ts';

const seed = newSeed();
const kills = scaled(3, 60);
const USERS = 6;
/** Uses that have reached the upstream before the kill, at least. */
const MIN_USES = 10;
const MAX_DELAY_MS = 60;
const MAX_RESPONSE_MS = 20;
/** Longer than the entries of a round. */
const PAGE = 1000;
const AGENT = 'user';
const PATH = 'crash/key';

test(`${kills} kills in the middle of uses leave no request without its entry (SEED=${seed})`, async (t) => {
  const dice = new Dice(seed);
  /** The requests of this round that arrived. */
  const arrived = new Set<string>();
  let enough = Promise.withResolvers<void>();
  const upstream = await startUpstream(t, ({ url = '' }, response) => {
    arrived.add(url);
    response.write('begin');
    if (arrived.size >= MIN_USES) enough.resolve();
    // One response does not end, so that every kill meets a use.
    if (arrived.size === MIN_USES) return;
    setTimeout(() => response.end('end'), dice.below(MAX_RESPONSE_MS));
  });
  const origin = `https://127.0.0.1:${upstream.port}`;
  const dataDir = join(temporaryDirectory(t), 'data');

  /** Each use has its own path, until the service is dead. One call and the base URL take turns. */
  async function useUntilDead(agent: Client, prefix: string): Promise<void> {
    for (let number = 0; ; number++) {
      const path = `${prefix}/${number}`;
      const call = { path: PATH, method: 'GET', url: `${origin}${path}` };
      try {
        const isCall = number % 2 === 0;
        const { status, text } = await (isCall ? agent.post('/api/v1/use', call) : agent.get(`/use/${PATH}/-${path}`));
        assert.equal(status, 200, text);
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error;
        return;
      }
    }
  }

  async function prepare(admin: Client): Promise<void> {
    const targets = [{ origin, allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem }];
    const policy = { name: AGENT, principal: `agent:${AGENT}`, resources: [PATH], actions: ['use'] };
    const answers = [
      await admin.post('/api/v1/credentials', { path: PATH, value: 'sk-test-0123456789abcdefghijklmnop' }),
      await admin.put(`/api/v1/targets/${PATH}`, { targets, placement: { kind: 'bearer' } }),
      await admin.post('/api/v1/agents', { name: AGENT }),
      await admin.post('/api/v1/policies', policy),
    ];
    assert.deepEqual(
      answers.map(({ status }) => status),
      [201, 200, 201, 201],
    );
  }

  let [uses, cut, unsent] = [0, 0, 0];

  /** Compares the log with what reached the upstream in the last round. */
  async function inspect(admin: Client, round: number): Promise<void> {
    assert.equal((await admin.get('/api/v1/audit/verify')).body.data.valid, true);
    const page = async (event: string): Promise<readonly { id: string; target_path: string }[]> =>
      (await admin.get(`/api/v1/audit?event_type=${event}&order=desc&limit=${PAGE}`)).body.data;
    const intents = (await page('credential.use')).filter(({ target_path: path }) => path.startsWith(`/${round}/`));
    assert.ok(intents.length < PAGE);
    const paths = new Set(intents.map(({ target_path: path }) => path));
    assert.equal(paths.size, intents.length, 'each use has one entry');
    assert.deepEqual([...arrived.difference(paths)], [], 'each request has its entry');
    const ended = new Set((await page('credential.use_result')).map(({ id }) => id));
    uses += arrived.size;
    cut += intents.filter(({ id, target_path: path }) => arrived.has(path) && !ended.has(id)).length;
    unsent += paths.difference(arrived).size;
  }

  for (let round = 0; round <= kills; round++) {
    const service: ServiceProcess = await startProcess(t, dataDir);
    const admin = createClient(service.address, service.adminToken);
    if (round === 0) await prepare(admin);
    else await inspect(admin, round - 1);
    if (round === kills) {
      await service.end('SIGTERM');
      break;
    }
    arrived.clear();
    enough = Promise.withResolvers();
    const token = await logIn(service.address, AGENT, readAgentKey(dataDir, AGENT));
    const agent = createClient(service.address, token);
    const load = Promise.all(Array.from({ length: USERS }, (_, user) => useUntilDead(agent, `/${round}/${user}`)));
    await Promise.race([enough.promise, load]);
    await sleep(dice.below(MAX_DELAY_MS));
    await service.end('SIGKILL');
    await load;
    // The broker outlives the service until it notices. Requests that it sends until then count.
    while ((await connectionsOf(upstream.server)) > 0) await sleep(5);
  }
  t.diagnostic(`${kills} kills, ${uses} uses reached the upstream, ${cut} of them were cut; ${unsent} were not sent`);
  assert.ok(cut > 0, 'the kills met uses');
});

function connectionsOf(server: { getConnections(done: (error: Error | null, count: number) => void): unknown }) {
  const { promise, resolve } = Promise.withResolvers<number>();
  server.getConnections((_, count) => resolve(count));
  return promise;
}
