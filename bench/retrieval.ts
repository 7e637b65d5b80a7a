// Retrieval as an agent at 64 connections against a bare Fastify route, round by round in turns, so that whatever else the
// machine does falls on both. Every answer must be 200, and the log must grow by exactly as many entries.

import { join } from 'node:path';
import { createClient, logIn, readAgentKey } from '../test/kit/client.ts';
import { type Scope, temporaryFolder } from '../test/kit/folder.ts';
import { VALUE } from './answer.ts';
import { startGenerator } from './generator.ts';
import type { LoadJob, LoadResult } from './load.ts';
import { median, processorSeconds } from './measuring.ts';
import { type Program, type ServiceProgram, startBare, startService } from './program.ts';
import type { Say } from './report.ts';

const CONNECTIONS = 64;
const CREDENTIALS = 1000;
const WARM_UP_REQUESTS = 20_000;
/** How many credentials are stored at a time. */
const STORED_AT_ONCE = 50;

export interface Side {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly generatorBusy: number;
  /** Processor time of the server for one request; null where the system does not tell. */
  readonly cpuMicroseconds: number | null;
}

export interface RetrievalFigures {
  readonly ratio: number;
  /** Of the single rounds: the smallest and the largest ratio. */
  readonly ratioRange: readonly [number, number];
  readonly service: Side;
  readonly bare: Side;
  readonly answered: number;
}

interface Round {
  readonly load: LoadResult;
  readonly cpuMicroseconds: number | null;
}

export async function measureRetrieval(
  scope: Scope,
  say: Say,
  { rounds, seconds }: { rounds: number; seconds: number },
): Promise<{ figures: RetrievalFigures; service: ServiceProgram }> {
  say(`Retrieval: storing ${CREDENTIALS} credentials …`);
  const service = await startService(scope, join(temporaryFolder(scope), 'data'));
  const { paths, token } = await prepare(service);
  const bare = await startBare(scope);
  const generator = startGenerator(scope);
  const round = async (program: Program, amount: number): Promise<Round> => {
    const job: LoadJob = { address: program.address, token, paths, connections: CONNECTIONS, amount };
    const before = processorSeconds(program.pid);
    const load = await generator.run(job);
    const after = processorSeconds(program.pid);
    assertAllAnswered(load, amount);
    return {
      load,
      cpuMicroseconds: before === null || after === null ? null : ((after - before) / amount) * 1e6,
    };
  };

  say('Retrieval: warming up …');
  await round(bare, WARM_UP_REQUESTS);
  await round(service, WARM_UP_REQUESTS);
  const bareAmount = Math.round((await round(bare, WARM_UP_REQUESTS)).load.perSecond * seconds);
  const serviceAmount = Math.round((await round(service, WARM_UP_REQUESTS)).load.perSecond * seconds);

  const before = await countEntries(service);
  const ofBare: Round[] = [];
  const ofService: Round[] = [];
  for (let number = 1; number <= rounds; number++) {
    const [first, second] = [await round(bare, bareAmount), await round(service, serviceAmount)];
    ofBare.push(first);
    ofService.push(second);
    const [a, b] = [first.load.perSecond, second.load.perSecond].map(Math.round);
    say(`Retrieval: round ${number} of ${rounds}: bare Fastify ${a}/s, Leasehold ${b}/s`);
  }
  const answered = serviceAmount * rounds;
  const grown = (await countEntries(service)) - before;
  if (grown !== answered) throw new Error(`the log grew by ${grown} entries for ${answered} retrievals`);

  const ratios = ofService.map(({ load }, index) => load.perSecond / (ofBare[index]?.load.perSecond ?? 0));
  const [serviceSide, bareSide] = [sum(ofService), sum(ofBare)];
  return {
    figures: {
      ratio: serviceSide.perSecond / bareSide.perSecond,
      ratioRange: [Math.min(...ratios), Math.max(...ratios)],
      service: serviceSide,
      bare: bareSide,
      answered,
    },
    service,
  };
}

/** One agent with a policy for everything below a prefix, and credentials there. */
async function prepare(service: ServiceProgram): Promise<{ paths: string[]; token: string }> {
  const { address, dataDir, adminToken } = service;
  const admin = createClient(address, adminToken);
  const create = async (path: string, body: unknown): Promise<void> => {
    const { status, text } = await admin.post(path, body);
    if (status !== 201) throw new Error(`POST ${path} was answered ${status}: ${text}`);
  };
  const names = Array.from({ length: CREDENTIALS }, (_, index) => `bench/team-${index % 20}/service-${index}/api-key`);
  for (let start = 0; start < names.length; start += STORED_AT_ONCE) {
    const some = names.slice(start, start + STORED_AT_ONCE);
    await Promise.all(some.map((path) => create('/api/v1/credentials', { path, value: VALUE })));
  }
  await create('/api/v1/agents', { name: 'bench' });
  const grant = { resources: ['bench/*'], actions: ['retrieve'], max_ttl: 3600 };
  await create('/api/v1/policies', { name: 'bench', principal: 'agent:bench', ...grant });
  const token = await logIn(address, 'bench', readAgentKey(dataDir, 'bench'));
  const paths = names.map((name) => `/api/v1/credentials/${name}`);
  const { body } = await createClient(address, token).get(paths[0] ?? '');
  if (body?.data?.value !== VALUE) throw new Error('the service did not answer the value that was stored');
  return { paths, token };
}

async function countEntries({ address, adminToken }: ServiceProgram): Promise<number> {
  const { body } = await createClient(address, adminToken).get('/api/v1/audit?limit=1');
  return body.meta.total;
}

function assertAllAnswered({ statuses, errors }: LoadResult, amount: number): void {
  if (errors === 0 && statuses['200'] === amount) return;
  throw new Error(`of ${amount} requests: ${JSON.stringify(statuses)} by status, ${errors} errors`);
}

function sum(rounds: readonly Round[]): Side {
  const middle = (get: (load: LoadResult) => number): number => median(rounds.map(({ load }) => get(load)));
  const cpu = rounds.flatMap(({ cpuMicroseconds }) => cpuMicroseconds ?? []);
  return {
    perSecond: middle((load) => load.perSecond),
    p50Ms: middle((load) => load.p50Ms),
    p99Ms: middle((load) => load.p99Ms),
    generatorBusy: middle((load) => load.busy),
    cpuMicroseconds: cpu.length === 0 ? null : median(cpu),
  };
}
