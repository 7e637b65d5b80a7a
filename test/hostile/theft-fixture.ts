/** A service, a hostile upstream and an agent that may use three credentials there and see none of them. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect } from 'node:tls';
import { startUpstream, type Upstream } from '../broker/upstream.ts';
import type { Client, TestResponse } from '../kit/client.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { canRead } from './value-reader.ts';

/** With characters that each escape changes. */
export const VALUE = 'sk-t3st+Qx7/Zr9=mW&4k<Lp>"8vB_c-Yd';
export const PATHS = { bearer: 'theft/bearer', basic: 'theft/basic', query: 'theft/query' } as const;

const PLACEMENTS = {
  bearer: { kind: 'bearer' },
  basic: { kind: 'basic', username: 'robot' },
  query: { kind: 'query', name: 'key' },
} as const;

export type Respond = (response: ServerResponse, request: IncomingMessage) => unknown;

export async function startTheftFixture(scope: Scope) {
  const service = await startTestService(scope);
  let respond: Respond = (response) => response.end('ok');
  const upstream = await startUpstream(scope, (request, response) => respond(response, request));
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

  /** One request with a credential, whose answer must not contain the value. Resolves to it. */
  async function use(fields: Record<string, unknown> = {}, as: Client = thief): Promise<TestResponse> {
    const call = { path: PATHS.bearer, method: 'GET', url: `${origin}/v1/echo`, ...fields };
    const answer = await as.post('/api/v1/use', call);
    assertUnreadable(answer);
    return answer;
  }

  /** The upstream repeats the value in some form. The reader can read it there, but not in the answer. */
  async function echo(fields: Record<string, unknown>, how: Respond): Promise<TestResponse> {
    respond = how;
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
  async function statuses(calls: readonly Record<string, unknown>[]): Promise<number[]> {
    const before = upstream.requests.length;
    const answers: number[] = [];
    for (const call of calls) answers.push((await use(call)).status);
    assert.equal(upstream.requests.length, before);
    assert.equal(ownServer.requests.length, 0);
    return answers;
  }

  async function assertRefused(calls: readonly Record<string, unknown>[]): Promise<void> {
    for (const [index, status] of (await statuses(calls)).entries()) {
      assert.ok([400, 403, 502].includes(status), `${status} for ${JSON.stringify(calls[index])}`);
    }
  }

  return {
    ...{ service, admin, thief, upstream, ownServer, origin, targets, allowed, use, echo, statuses, assertRefused },
    setResponse: (how: Respond) => {
      respond = how;
    },
  };
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
  return [all, isChunked ? withoutChunks(body) : body];
}

function withoutChunks(bytes: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const start = bytes.indexOf('\r\n', at) + 2;
    const length = Number.parseInt(bytes.toString('latin1', at, start), 16);
    if (start === 1 || !(length > 0)) return Buffer.concat(chunks);
    chunks.push(bytes.subarray(start, start + length));
    at = start + length + 2;
  }
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

/** The text in base64 with nought, one and two bytes before it. */
export const alignments = (text: string, encoding: 'base64' | 'base64url'): string[] =>
  ['', 'a', 'ab'].map((before) => Buffer.from(`${before}${text}`).toString(encoding));
