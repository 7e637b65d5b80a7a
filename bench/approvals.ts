// How soon a request that waits for an operator continues after the answer: one node holds 1,000 requests, and an
// operator answers them on the other node.

import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, createClient } from '../test/kit/client.ts';
import type { Scope } from '../test/kit/directory.ts';
import { addOperator, expectStatus } from '../test/kit/operators.ts';
import { median, percentile, toFigure } from './measurement.ts';
import { startCluster } from './postgres-cluster.ts';
import { benchToken } from './targets.ts';
import type { Figure, Stage } from './types.ts';

const WAITING = 1000;
const AGENTS = 10;
const APPROVALS = '/api/v1/approvals';
/** Answers are spread over this time, which is less than the hold of a request. */
const ANSWERED_WITHIN_MS = 15_000;
/** One address may open 500 connections. */
const CLIENT_ADDRESSES = ['127.0.0.1', '127.0.0.2', '127.0.0.3', '127.0.0.4'];

interface Pending {
  readonly approval_id: string;
  readonly nonce: string;
  readonly path: string;
}

export async function measureApprovals(stage: Stage): Promise<Figure[]> {
  const { scope, plan, say } = stage;
  const { nodes, server } = await startCluster(stage, 2);
  const [one, two] = nodes;
  if (one === undefined || two === undefined) throw new Error('the cluster has too few nodes');
  const admin = createClient(one.address, one.adminToken);
  const { token } = await addOperator({ address: one.address, admin }, 'ann', ['approver']);
  const approver = createClient(two.address, token);
  const rule = { for: 'retrieve', timeout: 600 };
  const policy = { principal: 'agent:bench-*', resources: ['asked/*'], actions: ['retrieve'], approval: rule };
  await expectStatus(admin.put('/api/v1/policies/asks', policy), 200);
  for (let n = 0; n < WAITING; n++) {
    await expectStatus(admin.post('/api/v1/credentials', { path: `asked/${n}`, value: 'value' }), 201);
  }
  const retrieve = createRetriever(scope, one.address);
  const rounds: { p50Ms: number; p99Ms: number }[] = [];
  for (let round = 1; round <= plan.rounds; round++) {
    const times = await runRound(approver, retrieve);
    rounds.push({ p50Ms: median(times), p99Ms: percentile(times, 0.99) });
    say(`Round ${round} of ${plan.rounds}: ${JSON.stringify(rounds.at(-1))}`);
  }
  for (const node of nodes) await node.stop();
  await server.end();
  const label = 'Answer on another node to the response, 1,000 waiting';
  return [
    toFigure(
      `${label}, p50`,
      'ms',
      rounds.map(({ p50Ms }) => p50Ms),
    ),
    toFigure(
      `${label}, p99`,
      'ms',
      rounds.map(({ p99Ms }) => p99Ms),
    ),
  ];
}

type Retrieve = (index: number) => Promise<number>;

/** Milliseconds from sending each answer to the response of its request, in order. */
async function runRound(approver: Client, retrieve: Retrieve): Promise<number[]> {
  const responses = Array.from({ length: WAITING }, (_, index) =>
    retrieve(index).then((status) => ({ status, at: performance.now() })),
  );
  const pending = await readPending(approver);
  const startedAt = performance.now();
  const times = pending.map(async ({ approval_id, nonce, path }, index) => {
    await sleep(Math.max(0, (index / WAITING) * ANSWERED_WITHIN_MS - (performance.now() - startedAt)));
    const from = performance.now();
    await expectStatus(approver.post(`${APPROVALS}/${approval_id}/approve`, { nonce }), 200);
    const response = await responses[Number(path.split('/')[1])];
    if (response?.status !== 200) throw new Error(`a request that was approved returned ${response?.status}`);
    return response.at - from;
  });
  return (await Promise.all(times)).toSorted((a, b) => a - b);
}

/** Resolves when all requests wait. */
async function readPending(approver: Client): Promise<readonly Pending[]> {
  for (;;) {
    const { body } = await approver.get(`${APPROVALS}?status=pending&limit=1000`);
    if (body.data.length === WAITING) return body.data;
    await sleep(50);
  }
}

function createRetriever(scope: Scope, address: string): Retrieve {
  const agents = CLIENT_ADDRESSES.map((localAddress) => new http.Agent({ maxSockets: Infinity, localAddress }));
  scope.after(() => {
    for (const agent of agents) agent.destroy();
  });
  return (index) =>
    new Promise((resolve, reject) => {
      const agent = agents[index % agents.length];
      const headers = { authorization: `Bearer ${benchToken(index % AGENTS)}` };
      const options = { headers, ...(agent === undefined ? {} : { agent }) };
      const request = http.get(`${address}/api/v1/credentials/asked/${index}`, options, (response) => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0));
      });
      request.on('error', reject);
    });
}
