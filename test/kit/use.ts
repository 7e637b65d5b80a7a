/** Uses by base URL: a credential with targets, raw requests to its base URL, and streams that the test reads. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage, type OutgoingHttpHeaders } from 'node:http';
import type { Upstream } from '../broker/upstream.ts';
import type { TestService } from './service.ts';

export const VALUE = 'sk-test-0123456789abcdefghijklmnop';

interface Fields {
  readonly placement?: unknown;
  readonly service?: string;
  readonly paths?: readonly string[];
  readonly methods?: readonly string[];
}

/** The fields of a target that is the upstream. */
export const targetOf = (upstream: Pick<Upstream, 'port' | 'caPem'>, { paths, methods }: Fields = {}) => ({
  origin: `https://127.0.0.1:${upstream.port}`,
  allow_networks: ['127.0.0.0/8'],
  ca_pem: upstream.caPem,
  ...(paths === undefined ? {} : { paths }),
  ...(methods === undefined ? {} : { methods }),
});

/** Stores a credential that may be used at the upstreams. */
export async function storeWithTargets(
  { admin }: Pick<TestService, 'admin'>,
  path: string,
  upstreams: Upstream | readonly object[],
  { placement = { kind: 'bearer' }, service, ...fields }: Fields = {},
): Promise<void> {
  const targets = Array.isArray(upstreams) ? upstreams : [targetOf(upstreams as Upstream, fields)];
  const stored = await admin.post('/api/v1/credentials', { path, value: VALUE });
  assert.equal(stored.status, 201, stored.text);
  const body = { targets, placement, ...(service === undefined ? {} : { service }) };
  const put = await admin.put(`/api/v1/targets/${path}`, body);
  assert.equal(put.status, 200, put.text);
}

export interface Exchange {
  readonly response: IncomingMessage;
  /** Fails if the response breaks off. */
  text(): Promise<string>;
}

/** Sends a request as it is given, without following or decoding anything, and resolves with the head. */
export function exchange(
  address: string,
  path: string,
  headers: OutgoingHttpHeaders,
  { method = 'GET', body }: { method?: string; body?: string | Buffer } = {},
): Promise<Exchange> {
  const { hostname, port } = new URL(address);
  const { promise, resolve, reject } = Promise.withResolvers<Exchange>();
  const request = http.request({ hostname, port, path, method, headers, agent: false }, (response) => {
    const text = async (): Promise<string> => Buffer.concat(await response.toArray()).toString('utf8');
    resolve({ response, text });
  });
  request.on('error', reject);
  request.end(body);
  return promise;
}

/** A response that continues until it is aborted. */
export interface OpenStream {
  readonly leaseId: string;
  /** Resolves with the time at which the response broke off; rejects if it ended as a complete one does. */
  readonly broken: Promise<number>;
}

/** Opens streams at a base URL whose upstream sends one event and never ends. */
export function openStreams(
  count: number,
  address: string,
  path: string,
  headers: OutgoingHttpHeaders,
): Promise<OpenStream[]> {
  return Promise.all(
    Array.from({ length: count }, async (): Promise<OpenStream> => {
      const { response } = await exchange(address, path, headers);
      assert.equal(response.statusCode, 200);
      await once(response, 'data');
      const { promise: broken, resolve, reject } = Promise.withResolvers<number>();
      response.on('error', () => undefined);
      response.on('end', () => reject(new Error('the response looks complete')));
      response.on('close', () => resolve(performance.now()));
      response.resume();
      return { leaseId: String(response.headers['x-leasehold-lease']), broken };
    }),
  );
}
