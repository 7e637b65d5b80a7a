// An attacker on many connections leaves another caller about half of its rate. The tests ask for a half where more is
// usual, and for a quarter where it is a half. SOURCE: SECURITY.md, P8.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, createClient, logIn, readAgentKey } from '../kit/client.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { type ServiceProcess, startProcess } from '../kit/process.ts';
import type { Attack } from './attack.ts';

const CONNECTIONS = 32;
const VICTIM_CONNECTIONS = 8;
const MIN_ROUNDS = 3;
/** A busy machine moves a single round either way: more of them are added while the sum does not decide. */
const MAX_ROUNDS = 12;
const WINDOW_MS = 500;
/** Fewer retrievals in a window would make the ratio one of small numbers. */
const MIN_RETRIEVALS = 64;
/** The attacker's connections open. */
const SETTLE_MS = 600;
const PATH = '/api/v1/credentials/open/stored';

interface Target {
  readonly service: ServiceProcess;
  readonly victim: Client;
  /** The token of an agent without grants. */
  readonly token: string;
}

async function startTarget(): Promise<Target> {
  const dataDir = join(temporaryDirectory({ after }), 'data');
  const service = await startProcess({ after }, dataDir, ['--log-level', 'silent']);
  const admin = createClient(service.address, service.adminToken);
  await admin.post('/api/v1/credentials', { path: 'open/stored', value: 'stored' });
  const policy = { name: 'victim', principal: 'agent:victim', resources: ['open/*'], actions: ['retrieve'] };
  await admin.post('/api/v1/policies', policy);
  const enter = async (name: string) => {
    assert.equal((await admin.post('/api/v1/agents', { name })).status, 201);
    return logIn(service.address, name, readAgentKey(dataDir, name));
  };
  return {
    service,
    victim: createClient(service.address, await enter('victim')),
    token: await enter('without-grants'),
  };
}

/** The attack targets the victim's service or another one, so that the machine is equally busy. */
const attacked = await startTarget();
const other = await startTarget();

const JSON_BODY = 'Content-Type: application/json';
const keys = (bytes: number): string => {
  const fields = Array.from({ length: bytes / 8 }, (_, n) => `"k${n}":1`);
  return `{${fields.join(',').slice(0, bytes - 20)}":1}`;
};
const LARGE = 2 * 1024 * 1024;
const SMALL = 32 * 1024;

interface Attacking {
  readonly line: string;
  readonly isAgent: boolean;
  readonly body: string;
  /** The least part of its rate that the other caller keeps. */
  readonly kept: number;
}

const revoke = 'POST /api/v1/leases/revoke';
const challenge = 'POST /auth/challenge';
const largest = `{"path":"/","value":"${'\\u0061'.repeat(256 * 1024)}"}`;
const HALF = 0.5;
/**
 * WHY: under this attack the other caller keeps half of its rate, a little more or less. Without the limit it would
 * keep a fiftieth.
 */
const QUARTER = 0.25;
const ATTACKS: Readonly<Record<string, Attacking>> = {
  'an agent, 2 MiB of keys': { line: revoke, isAgent: true, body: keys(LARGE), kept: HALF },
  'an agent, the largest value to no valid path': {
    line: 'POST /api/v1/credentials',
    isAgent: true,
    body: largest,
    kept: QUARTER,
  },
  'an agent, 2 MiB at a route of the administrator': {
    line: 'POST /api/v1/policies',
    isAgent: true,
    body: keys(LARGE),
    kept: HALF,
  },
  'an unauthenticated client, 32 KiB of keys': { line: challenge, isAgent: false, body: keys(SMALL), kept: HALF },
  'an unauthenticated client, honest challenges': {
    line: challenge,
    isAgent: false,
    body: '{"agent_name":"victim"}',
    kept: HALF,
  },
};

/** Another agent that uses the service on a few connections. Resolves to its retrievals per second. */
async function retrieve(): Promise<number> {
  let count = 0;
  const startedAt = performance.now();
  const until = startedAt + WINDOW_MS;
  const ask = async (): Promise<void> => {
    while (performance.now() < until || count < MIN_RETRIEVALS) {
      assert.equal((await attacked.victim.get(PATH)).status, 200);
      count += 1;
    }
  };
  await Promise.all(Array.from({ length: VICTIM_CONNECTIONS }, ask));
  return (count * 1000) / (performance.now() - startedAt);
}

function start(scope: Scope, { service, token }: Target, { line, isAgent, body }: Attacking): ChildProcess {
  const head = [
    `${line} HTTP/1.1`,
    ...(isAgent ? [`Authorization: Bearer ${token}`] : []),
    ...(body === '' ? [] : [JSON_BODY]),
  ];
  const child = spawn(process.execPath, [join(import.meta.dirname, 'attack.ts'), 'run'], {
    stdio: ['pipe', 'inherit', 'inherit'],
  });
  const job: Attack = { port: Number(new URL(service.address).port), connections: CONNECTIONS, head, body };
  child.stdin.on('error', () => undefined).end(JSON.stringify(job));
  scope.after(() => child.kill('SIGKILL'));
  return child;
}

for (const [what, attacking] of Object.entries(ATTACKS)) {
  test(`${what}, on ${CONNECTIONS} connections: another agent keeps ${100 * attacking.kept} % of its rate`, async (t) => {
    const count = async (target: Target): Promise<number> => {
      const child = start(t, target, attacking);
      await sleep(SETTLE_MS);
      const retrieved = await retrieve();
      child.kill('SIGKILL');
      await once(child, 'close');
      return retrieved;
    };
    // WHY the best round: other load on the machine only lowers the rate, and a starved caller has no good round.
    let [before, during] = [1, 0];
    const isKept = (): boolean => during >= before * attacking.kept;
    for (let rounds = 0; rounds < MIN_ROUNDS || (rounds < MAX_ROUNDS && !isKept()); rounds++) {
      const [undisturbed, disturbed] = [await count(other), await count(attacked)];
      if (disturbed / undisturbed > during / before) [before, during] = [undisturbed, disturbed];
    }
    const found = `${Math.round(before)}/s while another service is attacked, ${Math.round(during)}/s while its own is`;
    t.diagnostic(found);
    assert.ok(isKept(), found);
  });
}
