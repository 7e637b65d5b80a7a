// Uses of a credential compared with a bare forwarder in the same rounds, and the lag that the engine adds to events.
// The log must grow by two entries for each use.

import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import https from 'node:https';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BrokerClient } from '../src/broker/broker-client.ts';
import type { UpstreamRequestSpec } from '../src/broker/protocol.ts';
import { makeCertificate } from '../test/kit/certificate.ts';
import { createClient } from '../test/kit/client.ts';
import { compare, type Round, rateRatios, type Side } from './compare.ts';
import { childOf, percentile, processorSeconds, toFigure } from './measurement.ts';
import { startHelper } from './program.ts';
import { CONNECTIONS, loadFigures } from './retrieval.ts';
import { benchToken, VALUE } from './targets.ts';
import type { Figure, Stage } from './types.ts';
import { type BenchVault, countEntries, removeVault, SMALL, startVault } from './vault.ts';

const UPSTREAM = fileURLToPath(import.meta.resolve('./upstream.ts'));
const FORWARDER = fileURLToPath(import.meta.resolve('./forwarder.ts'));
const PATH = 'bench-use/key';
const STREAMS = 20;

export async function measureUse(stage: Stage): Promise<Figure[]> {
  const { scope, plan } = stage;
  const vault = await startVault(stage, SMALL);
  const { service } = vault;
  const { certFile, keyFile } = makeCertificate(scope);
  const upstream = await startHelper(scope, UPSTREAM, certFile, keyFile);
  const url = `${upstream.address}/v1/models`;
  const forwarder = await startHelper(scope, FORWARDER, url, certFile);
  const caPem = readFileSync(certFile, 'utf8');
  await allowUses(vault, upstream.address, caPem);
  const before = await countEntries(vault);
  const uses = { count: 0 };
  // The first use starts the broker.
  await useSide(stage, 'Leasehold', { ...service, pids: [] }, url, 1, uses).run(1);
  const broker = childOf(service.pid);
  const measure = async (connections: number, warmUp: number) => {
    const bare = useSide(stage, 'node:https', { ...forwarder, pids: [forwarder.pid] }, url, connections);
    const own = useSide(stage, 'Leasehold', { ...service, pids: [service.pid, broker] }, url, connections, uses);
    return await compare(stage, [bare, own], { warmUp, seconds: plan.seconds });
  };
  const [bareSingle = [], single = []] = await measure(1, plan.warmUpRequests / 20);
  const [bare = [], full = []] = await measure(CONNECTIONS, plan.warmUpRequests / 4);
  await assertRecorded(vault, before + 2 * uses.count);
  await forwarder.stop();
  await removeVault(vault);
  const lags = await measureLags(stage, upstream.address, caPem);
  await upstream.stop();
  const added = single.map(({ p50Ms }, round) => p50Ms - (bareSingle[round]?.p50Ms ?? Number.NaN));
  const cpu = (rounds: readonly Round[]): number[] => rounds.map(({ cpuMicroseconds }) => cpuMicroseconds);
  return [
    ...loadFigures('Use, 1 connection', single),
    ...loadFigures(`Use, ${CONNECTIONS} connections`, full),
    ...loadFigures('Bare forwarder, 1 connection', bareSingle),
    ...loadFigures(`Bare forwarder, ${CONNECTIONS} connections`, bare),
    toFigure('Added by a use to a bare forwarder, p50', 'ms', added),
    toFigure('Use rate relative to a bare forwarder', '', rateRatios(full, bare)),
    toFigure('Cost of a use, processor time', 'µs', cpu(full)),
    toFigure('Cost of a request to a bare forwarder, processor time', 'µs', cpu(bare)),
    toFigure(`Lag of events in ${STREAMS} streams, p99`, 'ms', lags.engine),
    toFigure(`Lag of events in ${STREAMS} streams without the engine, p99`, 'ms', lags.direct),
  ];
}

async function allowUses({ service }: BenchVault, origin: string, caPem: string): Promise<void> {
  const admin = createClient(service.address, service.adminToken);
  const targets = [{ origin, paths: ['/v1/*'], allow_networks: ['127.0.0.0/8'], ca_pem: caPem }];
  const policy = { name: 'bench-use', principal: 'agent:bench-*', resources: [PATH], actions: ['use'] };
  for (const answer of [
    await admin.post('/api/v1/credentials', { path: PATH, value: VALUE }),
    await admin.put(`/api/v1/targets/${PATH}`, { targets, placement: { kind: 'bearer' } }),
    await admin.post('/api/v1/policies', policy),
  ]) {
    if (answer.status >= 300) throw new Error(`status ${answer.status}: ${answer.text}`);
  }
}

function useSide(
  { generator }: Stage,
  name: string,
  { address, pids }: { readonly address: string; readonly pids: readonly number[] },
  url: string,
  connections: number,
  uses = { count: 0 },
): Side<Round> {
  const target = { address, credentials: 1, agents: 1 };
  const processorTime = (): number => pids.reduce((sum, pid) => sum + processorSeconds(pid), 0);
  const call = { path: PATH, method: 'GET', url };
  return {
    name,
    async run(wanted) {
      const amount = Math.max(Math.ceil(wanted), connections);
      const before = processorTime();
      const load = await generator.run({ kind: 'uses', target, connections, amount, token: benchToken(0), call });
      uses.count += amount;
      return { ...load, cpuMicroseconds: ((processorTime() - before) / load.answered) * 1e6 };
    },
  };
}

/** Results are recorded in batches, after the response. */
async function assertRecorded(vault: BenchVault, expected: number): Promise<void> {
  for (let attempt = 0; attempt < 50 && (await countEntries(vault)) < expected; attempt++) await sleep(100);
  const found = await countEntries(vault);
  if (found !== expected) throw new Error(`the log has ${found} entries instead of ${expected}`);
}

async function measureLags({ scope, plan, say }: Stage, origin: string, caPem: string) {
  const broker = new BrokerClient();
  broker.start();
  scope.after(() => broker.stop());
  const { hostname, port } = new URL(origin);
  const spec: UpstreamRequestSpec = {
    ...{ method: 'GET', scheme: 'https', host: hostname, port: Number(port), path: '/v1/events', headers: [] },
    ...{ bodyLength: 0, placement: { kind: 'bearer' }, value: VALUE, allowNetworks: ['127.0.0.0/8'], caPem },
    caller: 'bench',
    ...{ redact: [], isUpgrade: false, linkPrefix: null, targetNetworks: null, ownPorts: [] },
  };
  const byEngine = async (): Promise<Readable> => broker.use(spec, null).body;
  const agent = new https.Agent({ ca: caPem });
  const directly = async (): Promise<Readable> => {
    const [response] = await once(https.get(`${origin}/v1/events`, { agent }), 'response');
    return response as Readable;
  };
  const lags: Record<'engine' | 'direct', number[]> = { engine: [], direct: [] };
  for (let round = 1; round <= plan.rounds; round++) {
    lags.engine.push(await lagOf(byEngine, plan.seconds));
    lags.direct.push(await lagOf(directly, plan.seconds));
    say(`Lag ${round} of ${plan.rounds}: ${lags.engine.at(-1)?.toFixed(2)} ms by the engine`);
  }
  await broker.stop();
  return lags;
}

/** The p99 over the events of all streams, in milliseconds, from when each stream has had its first. */
async function lagOf(open: () => Promise<Readable>, seconds: number): Promise<number> {
  const lags: number[] = [];
  const streams = await Promise.all(Array.from({ length: STREAMS }, open));
  for (const stream of streams) stream.on('error', () => undefined);
  await Promise.all(streams.map((stream) => once(stream, 'data')));
  for (const stream of streams) {
    stream.on('data', (chunk: Uint8Array) => {
      const now = process.hrtime.bigint();
      const times = Buffer.from(chunk).toString('latin1').matchAll(/\d+/g);
      lags.push(...[...times].map(([time]) => Number(now - BigInt(time)) / 1e6));
    });
  }
  await sleep(seconds * 1000);
  for (const stream of streams) stream.destroy();
  if (lags.length === 0) throw new Error('no event arrived');
  return percentile(
    lags.toSorted((a, b) => a - b),
    0.99,
  );
}
