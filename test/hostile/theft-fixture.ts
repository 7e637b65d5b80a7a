/**
 * A server, a hostile upstream and an agent that may use three credentials there without seeing them. Each attempt is
 * made at both endpoints.
 */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { connect } from 'node:tls';
import { startUpstream, type Upstream } from '../broker/upstream.ts';
import type { TestResponse } from '../kit/client.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { type Caller, type ReceivedRequest, sendByBaseUrl, withoutChunks } from './use-endpoints.ts';
import { canRead } from './value-reader.ts';

/** A value with characters that each escape changes. */
export const VALUE = 'sk-t3st+Qx7/Zr9=mW&4k<Lp>"8vB_c-Yd';
export const PATHS = { bearer: 'theft/bearer', basic: 'theft/basic', query: 'theft/query' } as const;

const PLACEMENTS = {
  bearer: { kind: 'bearer' },
  basic: { kind: 'basic', username: 'robot' },
  query: { kind: 'query', name: 'key' },
} as const;

export type Respond = (response: ServerResponse, request: IncomingMessage) => unknown;

const ENDPOINTS = ['one call', 'base URL'] as const;
type Endpoint = (typeof ENDPOINTS)[number];
/** Statuses of a rejection by the server. A raw request can be rejected before it is one for a base URL. */
const REJECTED: Readonly<Record<Endpoint, readonly number[]>> = {
  'one call': [400, 403, 502],
  'base URL': [400, 403, 404, 405, 421, 502],
};

export type TheftFixture = ReturnType<typeof openEndpoint>;

interface Attempt {
  readonly name: string;
  readonly make: (fixture: TheftFixture) => Promise<void>;
  /** The endpoints at which the attempt exists. */
  readonly endpoints: readonly Endpoint[];
}

const attempts: Attempt[] = [];

/** Adds an attempt, which is made at both endpoints unless it exists at one of them only. */
export function attempt(name: string, make: Attempt['make'], endpoints: readonly Endpoint[] = ENDPOINTS): void {
  attempts.push({ name, make, endpoints });
}

/** Adds a test for each attempt at each of its endpoints. */
export async function testAttempts(scope: Scope): Promise<void> {
  const scene = await startScene(scope);
  const fixtures = ENDPOINTS.map((endpoint) => openEndpoint(scene, endpoint));
  for (const { name, make, endpoints } of attempts)
    for (const fixture of fixtures.filter(({ endpoint }) => endpoints.includes(endpoint)))
      test(`${name}, by ${fixture.endpoint}`, () => make(fixture));
}

async function startScene(scope: Scope) {
  const service = await startTestService(scope);
  const current: { respond: Respond } = { respond: (response) => response.end('ok') };
  const upstream = await startUpstream(scope, (request, response) => current.respond(response, request));
  /** The thief's own server, on this machine. Nothing may arrive here. */
  const ownServer = await startUpstream(scope, (_, response) => response.end(), 'http');
  const origin = `https://127.0.0.1:${upstream.port}`;
  const allowed = { allow_networks: ['127.0.0.0/8'], ca_pem: upstream.caPem };
  const targets = [{ origin, paths: ['/v1/*'], ...allowed }];
  const { admin } = service;
  for (const [kind, path] of Object.entries(PATHS)) {
    assert.equal((await admin.post('/api/v1/credentials', { path, value: VALUE })).status, 201);
    const placement = PLACEMENTS[kind as keyof typeof PATHS];
    assert.equal((await admin.put(`/api/v1/targets/${path}`, { targets, placement })).status, 200);
  }
  const thief = await service.agent('thief', { 'theft/*': ['use', 'list'] });
  return { service, admin, thief, upstream, ownServer, origin, targets, allowed, current };
}

function openEndpoint({ current, ...scene }: Awaited<ReturnType<typeof startScene>>, endpoint: Endpoint) {
  const { service, thief, upstream, ownServer, origin } = scene;
  /** A name that the attempt at the other endpoint does not use. */
  const named = (name: string): string => `${name}-${ENDPOINTS.indexOf(endpoint)}`;

  /** One request with a credential, whose answer must not contain the value. Resolves to it. */
  async function use(fields: UseFields = {}, token: string | null = thief.token): Promise<TestResponse> {
    const call = { path: PATHS.bearer, method: 'GET', url: `${origin}/v1/echo`, ...fields };
    if (endpoint === 'one call') {
      const answer = await (token === null ? service.anonymous : service.as(token)).post('/api/v1/use', call);
      assertUnreadable(answer);
      return answer;
    }
    const caller = { address: service.address, token };
    return useByBaseUrl(caller, { headers: {}, ...call }, origin);
  }

  /** The upstream repeats the value in some form. The reader can read it there, but not in the answer. */
  async function echo(fields: UseFields, how: Respond): Promise<TestResponse> {
    current.respond = how;
    const answer = await use(fields);
    const parts = await readDirectly(upstream);
    assert.ok(
      parts.some((part) => canRead(part, VALUE)),
      'without the vault, the thief reads the value',
    );
    assert.equal(ownServer.requests.length, 0);
    return answer;
  }

  /** The status of each call; none of them may reach the upstream or the thief's server. */
  async function statuses(calls: readonly UseFields[]): Promise<number[]> {
    const before = upstream.requests.length;
    const answers: number[] = [];
    for (const call of calls) answers.push((await use(call)).status);
    assert.equal(upstream.requests.length, before);
    assert.equal(ownServer.requests.length, 0);
    return answers;
  }

  async function assertRefused(calls: readonly UseFields[]): Promise<void> {
    for (const call of calls)
      for (const status of await statuses([call]))
        assert.ok(REJECTED[endpoint].includes(status), `${status} for ${JSON.stringify(call)}`);
  }

  return {
    ...scene,
    endpoint,
    named,
    use,
    echo,
    statuses,
    assertRefused,
    setResponse: (how: Respond) => {
      current.respond = how;
    },
  };
}

/** The fields of one call that an attempt sets. */
type UseFields = Readonly<Record<string, unknown>>;

/**
 * Sends the call to the base URL, and returns the response in the form of the other endpoint's. A response that broke
 * off is a failure on both.
 */
async function useByBaseUrl(caller: Caller, call: ReceivedRequest, origin: string): Promise<TestResponse> {
  const { status, head, isUpstream, isComplete, bytes, body } = await sendByBaseUrl(caller, call, origin);
  for (const part of bytes.includes(body) ? [bytes] : [bytes, body])
    assert.equal(canRead(part, VALUE), false, part.toString('latin1').slice(0, 2000));
  const text = body.toString();
  const headers = new Headers();
  if (!isUpstream || !isComplete) {
    const error = /^[{]/.test(text) ? JSON.parse(text) : undefined;
    return { status: isUpstream ? 502 : status, headers, text, body: error };
  }
  const leaseId = /^x-leasehold-lease: *(\S+)/im.exec(head)?.[1];
  const redactions = `${head}${text}`.split('[secret]').length - 1;
  const data = { lease_id: leaseId, status, body: text, body_encoding: 'utf8', redactions };
  return { status: 200, headers, text, body: { data } };
}

/** The response to the upstream's last request, repeated without the vault: all of its bytes, and its body alone. */
async function readDirectly({ port, caPem, requests }: Upstream): Promise<Buffer[]> {
  const { method = '', url = '', headers } = requests.at(-1) ?? assert.fail();
  const ca = caPem ?? '';
  const socket = connect({ port, host: '127.0.0.1', ca });
  const fields = `authorization: ${headers.authorization ?? ''}\r\nhost: localhost\r\nconnection: close`;
  socket.write(`${method} ${url} HTTP/1.1\r\n${fields}\r\n\r\n`);
  const chunks: Buffer[] = [];
  socket.on('error', () => undefined);
  socket.on('data', (chunk) => chunks.push(Buffer.from(chunk)));
  await new Promise((resolve) => socket.on('close', resolve));
  const all = Buffer.concat(chunks);
  const start = all.indexOf('\r\n\r\n') + 4;
  const isChunked = /\r\ntransfer-encoding: .*chunked\r\n/i.test(all.toString('latin1', 0, start));
  const body = all.subarray(start);
  return [all, isChunked ? withoutChunks(body).body : body];
}

/** No part of the answer, nor of the body in it, contains the value in a form that a thief can read. */
export function assertUnreadable({ text, headers, body }: TestResponse): void {
  const texts = [text, JSON.stringify([...headers])];
  if (typeof body?.data?.body === 'string') texts.push(body.data.body);
  for (const each of texts) assert.equal(canRead(Buffer.from(each), VALUE), false, text.slice(0, 2000));
  if (body?.data?.body_encoding === 'base64') {
    const bytes = Buffer.from(body.data.body, 'base64');
    assert.equal(canRead(bytes, VALUE), false, bytes.toString('latin1').slice(0, 2000));
  }
}

/** The value as the upstream received it. */
export const tokenOf = ({ headers }: IncomingMessage): string => (headers.authorization ?? '').slice('Bearer '.length);
