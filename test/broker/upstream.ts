/** HTTPS upstreams with a certificate authority of the tests, and a broker's process for the tests of a file. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import { duplexPair } from 'node:stream';
import type { BrokerUse } from '../../src/broker/broker-client.ts';
import { BrokerClient, startUse } from '../../src/broker/broker-client.ts';
import { type BrokerOptions, serveBroker } from '../../src/broker/broker-server.ts';
import { Channel } from '../../src/broker/channel.ts';
import type { BrokerHead, UpstreamRequestSpec } from '../../src/broker/protocol.ts';
import { makeCertificate } from '../kit/certificate.ts';
import type { Scope } from '../kit/directory.ts';

export const VALUE = 'sk-t3st+Value/of=the.broker"42&<x>';
/** The value as headers and JSON can hold it without escapes. */
export const PLAIN_VALUE = 'sk-test-0123456789abcdefghijklmnop';

export interface Upstream {
  readonly server: https.Server | http.Server;
  readonly port: number;
  readonly caPem: string | null;
  /** The heads of all requests so far. */
  readonly requests: IncomingMessage[];
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

/** WHY long: on a busy machine, a connection that both sides close would end the use that was just sent on it. */
const KEEP_ALIVE_MS = 120_000;

export async function startUpstream(scope: Scope, handler: Handler, scheme: 'https' | 'http' = 'https') {
  const requests: IncomingMessage[] = [];
  const listener: Handler = (request, response) => {
    requests.push(request);
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    handler(request, response);
  };
  let caPem: string | null = null;
  let server: https.Server | http.Server = http.createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, listener);
  if (scheme === 'https') {
    const { certFile, keyFile } = makeCertificate(scope, 'DNS:localhost,DNS:upstream.test,IP:127.0.0.1');
    caPem = readFileSync(certFile, 'utf8');
    const certificate = { cert: caPem, key: readFileSync(keyFile) };
    server = https.createServer({ ...certificate, keepAliveTimeout: KEEP_ALIVE_MS }, listener);
  }
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  scope.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, port: (server.address() as AddressInfo).port, caPem, requests } satisfies Upstream;
}

export function startBroker(scope: Scope): BrokerClient {
  const broker = new BrokerClient();
  broker.start();
  scope.after(() => broker.stop());
  return broker;
}

/** The spec of a request that the upstream of a test can answer. */
export function specFor(
  upstream: Pick<Upstream, 'port' | 'caPem'>,
  fields: Partial<UpstreamRequestSpec> = {},
): UpstreamRequestSpec {
  return {
    caller: 'tester',
    method: 'GET',
    scheme: upstream.caPem === null ? 'http' : 'https',
    host: '127.0.0.1',
    port: upstream.port,
    path: '/',
    headers: [],
    bodyLength: 0,
    placement: { kind: 'bearer' },
    value: PLAIN_VALUE,
    allowNetworks: ['127.0.0.0/8'],
    targetNetworks: null,
    ownPorts: [],
    caPem: upstream.caPem,
    redact: [],
    isUpgrade: false,
    linkPrefix: null,
    ...fields,
  };
}

export async function headOf(use: BrokerUse): Promise<Extract<BrokerHead, { kind: 'response' }>> {
  const head = await use.head;
  assert.equal(head.kind, 'response', JSON.stringify(head));
  return head.kind === 'response' ? head : assert.fail();
}

export const bodyOf = async (use: BrokerUse): Promise<Buffer> => Buffer.concat(await use.body.toArray());

export async function failureOf(use: BrokerUse): Promise<string> {
  const head = await use.head;
  return head.kind === 'error' ? head.failure : assert.fail(`status ${head.status}`);
}

/** The broker's end in the test's process, with other time limits or another resolver. */
export function startEngine(scope: Scope, options: BrokerOptions): Pick<BrokerClient, 'use'> {
  const [ours, theirs] = duplexPair();
  const server = serveBroker(theirs, () => undefined, options);
  const channel = new Channel(ours, { closed: () => undefined });
  scope.after(() => {
    channel.close();
    server.close();
  });
  return { use: (spec, body, signal) => startUse(channel, spec, body, signal) };
}
