// Clients that send random bytes over plain HTTP, TLS and a Unix socket, and reset at any byte. They run against
// processes; the assertion is that the same process serves afterwards.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, request as requestPlain } from 'node:http';
import { request as requestSecure } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { makeCertificate } from '../kit/certificate.ts';
import { createClient, logIn, readAgentKey } from '../kit/client.ts';
import type { Dice } from '../kit/dice.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { carriedBy, cut, framed, play, type Script, withOddHeaders } from '../kit/hostile-bytes.ts';
import { type ServiceProcess, startProcess } from '../kit/process.ts';

export interface Entrance {
  readonly name: string;
  readonly process: ServiceProcess;
  /** The token of an agent that may use a credential at a base URL; absent where only strangers speak. */
  readonly token?: string;
  connect(): Socket;
  /** The status of a normal request; null without a response. */
  health(): Promise<number | null>;
}

/** How long a client waits for the server to end a connection. */
const PATIENCE_MS = 300;

export async function startEntrances(scope: Scope): Promise<readonly Entrance[]> {
  const directory = (): string => join(temporaryDirectory(scope), 'data');
  const quiet = ['--log-level', 'silent'];
  const plainDir = directory();
  const plain = await startProcess(scope, plainDir, quiet);
  const socketPath = join(temporaryDirectory(scope), 'socket');
  const unix = await startProcess(scope, directory(), [...quiet, '--listen', `unix:${socketPath}`]);
  const { certFile, flags } = makeCertificate(scope);
  const secure = await startProcess(scope, directory(), [...quiet, ...flags]);
  const ca = readFileSync(certFile, 'utf8');
  const portOf = ({ address }: ServiceProcess): number => Number(new URL(address).port);
  const statusOf = (options: object, request: typeof requestPlain): Promise<number | null> =>
    new Promise((resolve) => {
      const call = request({ path: '/api/v1/health', agent: false, ...options }, (response) => {
        response.resume();
        resolve(response.statusCode ?? null);
      });
      call.on('error', () => resolve(null));
      call.end();
    });
  const at = (process: ServiceProcess) => ({ host: '127.0.0.1', port: portOf(process) });
  return [
    {
      name: 'HTTP',
      process: plain,
      token: await admitAgent(scope, plain, plainDir),
      connect: () => connect(at(plain)),
      health: () => statusOf(at(plain), requestPlain),
    },
    {
      name: 'Unix socket',
      process: unix,
      connect: () => connect(socketPath),
      health: () => statusOf({ socketPath }, requestPlain),
    },
    {
      name: 'TLS',
      process: secure,
      connect() {
        const carrier = connect(at(secure));
        carrier.on('error', () => undefined);
        return carriedBy(connectTls({ socket: carrier, ca, servername: 'localhost' }), carrier);
      },
      health: () => statusOf({ ...at(secure), ca, servername: 'localhost' }, requestSecure),
    },
  ];
}

/** Adds an agent with a credential for an upstream that repeats what it gets. Resolves to its session's token. */
async function admitAgent(scope: Scope, { address, adminToken }: ServiceProcess, dataDir: string): Promise<string> {
  const upstream = createServer((request, response) => {
    request.on('error', () => undefined);
    request.pipe(response);
  });
  upstream.on('upgrade', (_, socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  scope.after(() => {
    upstream.closeAllConnections();
    upstream.close();
  });
  const { port } = upstream.address() as AddressInfo;
  const admin = createClient(address, adminToken);
  const targets = [{ origin: `http://127.0.0.1:${port}`, allow_networks: ['127.0.0.0/8'] }];
  for (const answer of [
    await admin.post('/api/v1/agents', { name: 'a' }),
    await admin.post('/api/v1/policies', { name: 'a', principal: 'agent:a', resources: ['a'], actions: ['use'] }),
    await admin.post('/api/v1/credentials', { path: 'a', value: 'sk-test-0123456789abcdefghijklmnop' }),
    await admin.put('/api/v1/targets/a', { targets, placement: { kind: 'bearer' } }),
  ])
    assert.ok(answer.status < 300, answer.text);
  const token = await logIn(address, 'a', readAgentKey(dataDir, 'a'));
  // The first use starts the broker.
  assert.equal((await createClient(address, token).get('/use/a/-/')).status, 200);
  return token;
}

const METHODS = [
  'GET',
  'GET',
  'GET',
  'POST',
  'PUT',
  'DELETE',
  'HEAD',
  'OPTIONS',
  'CONNECT',
  'CONNECT',
  'PRI',
  'x',
] as const;
const TARGETS = [
  '/',
  '/api/v1/health',
  '/api/v1/credentials',
  '/auth/challenge',
  '/auth/verify',
  '/metrics',
  '/openapi.json',
  '/use/a/-/',
  '/use/a/-/v1?x=1',
  '/use/',
  '/console/',
  '/console/assets/x.js',
  'host:443',
  'http://a/',
  '*',
  '//',
  '/api/v1/credentials/__proto__',
  '/api/v1/policies?__proto__=1&constructor=2',
  '/%',
  '/%ff',
  '/\u00e9',
  '',
] as unknown as readonly [string, ...string[]];

/** One request, and how many exchanges it counts as. */
function randomRequest(dice: Dice, token: string | undefined): Buffer {
  if (dice.chance(0.03)) return dice.bytes(120);
  const asks = dice.chance(0.15);
  const isKnown = token !== undefined && dice.chance(0.4);
  const lines = [
    'Host: localhost',
    ...(isKnown ? [`Authorization: Bearer ${token}`] : []),
    ...(!isKnown && dice.chance(0.3) ? ['Authorization: Bearer lhs_none'] : []),
    ...(dice.chance(0.15) ? ['Expect: 100-continue'] : []),
    ...(asks ? ['Upgrade: websocket', 'Connection: Upgrade'] : []),
  ];
  const body = dice.chance(0.4)
    ? Buffer.from(dice.pick(['{}', '{"__proto__":{"a":1}}', '[', '{"agent_name":"a"}']))
    : null;
  const { lines: framing, bytes } = body === null ? { lines: [], bytes: Buffer.alloc(0) } : framed(dice, body);
  const version = dice.chance(0.95) ? 'HTTP/1.1' : dice.pick(['HTTP/1.0', 'HTTP/0.9', 'HTTP/3']);
  const type = body === null ? [] : ['Content-Type: application/json'];
  const target = (asks || isKnown) && dice.chance(0.7) ? '/use/a/-/v1' : dice.pick(TARGETS);
  const first = `${asks ? 'GET' : dice.pick(METHODS)} ${target} ${version}`;
  const head = [first, ...withOddHeaders(dice, [...lines, ...type, ...framing])].join('\r\n');
  return Buffer.concat([Buffer.from(`${head}\r\n\r\n`, 'latin1'), bytes]);
}

function randomScript(dice: Dice, token: string | undefined): { script: Script; exchanges: number } {
  const exchanges = dice.chance(0.6) ? 1 : 2 + dice.below(6);
  const bytes = Buffer.concat(Array.from({ length: exchanges }, () => randomRequest(dice, token)));
  return { script: cut(dice, bytes), exchanges };
}

/** Resolves when the connection has ended. */
function speak(socket: Socket, event: 'connect' | 'secureConnect', script: Script, isDeaf: boolean): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(() => socket.destroy(), PATIENCE_MS);
  socket.on('error', () => undefined);
  socket.on('close', () => {
    clearTimeout(timer);
    resolve();
  });
  // One that does not read leaves what was sent to it in the way of the reset.
  if (!isDeaf) socket.resume();
  socket.once(event, () => void play(socket, script));
  return promise;
}

/** Speaks on many connections at a time until that many requests were sent. Resolves to their number. */
export async function fuzzClients({ connect, name, token }: Entrance, dice: Dice, wanted: number): Promise<number> {
  let sent = 0;
  const work = async (): Promise<void> => {
    while (sent < wanted) {
      const { script, exchanges } = randomScript(dice, token);
      sent += exchanges;
      await speak(connect(), name === 'TLS' ? 'secureConnect' : 'connect', script, dice.chance(0.1));
    }
  };
  await Promise.all(Array.from({ length: 48 }, work));
  return sent;
}
