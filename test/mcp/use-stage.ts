// A service, an HTTPS upstream of the test, and an MCP server whose agent may use credentials below api/ and not
// retrieve them.
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { startUpstream } from '../broker/upstream.ts';
import type { Scope } from '../kit/directory.ts';
import { type Connected, connect, type Stage, type StageOptions, startStage, type TransportName } from './fixture.ts';

export const KEY = 'sk-test-0123456789abcdefghijklmnop';
export const KEY_PATH = 'api/key';

export interface UseStage extends Stage, Connected {
  /** The upstream's origin. */
  readonly origin: string;
  /** The heads of all requests that the upstream got. */
  readonly requests: readonly IncomingMessage[];
  /** The entries of the log about uses, newest first. */
  uses(): Promise<Readonly<Record<string, unknown>>[]>;
  /** Stores KEY at the path, with targets of these fields. */
  store(path: string, fields?: Readonly<Record<string, unknown>>): Promise<void>;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** `api/key` holds KEY and may be used at `/v1/*` of the upstream, with GET and POST. */
export async function startUseStage(
  scope: Scope,
  handler: Handler,
  options: StageOptions & { readonly over?: TransportName } = {},
): Promise<UseStage> {
  const grants = { 'api/*': ['use', 'list'], 'prod/*': ['retrieve'] };
  const stage = await startStage(scope, { grants, ...options });
  const upstream = await startUpstream(scope, (request, response) => void handler(request, response));
  const origin = `https://127.0.0.1:${upstream.port}`;
  const { admin } = stage.service;
  const store = async (path: string, fields: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    await admin.post('/api/v1/credentials', { path, value: KEY });
    const common = { paths: ['/v1/*'], methods: ['GET', 'POST'], allow_networks: ['127.0.0.0/8'] };
    const target = { origin, ...common, ca_pem: upstream.caPem, ...fields };
    const put = await admin.put(`/api/v1/targets/${path}`, { targets: [target], placement: { kind: 'bearer' } });
    assert.equal(put.status, 200, put.text);
  };
  await store(KEY_PATH);
  return {
    ...stage,
    ...(await connect(scope, stage.mcp, options.over ?? 'http')),
    origin,
    requests: upstream.requests,
    store,
    async uses() {
      const { body } = await admin.get('/api/v1/audit?limit=100&order=desc');
      return body.data.filter(({ event_type }: { event_type: string }) => event_type.startsWith('credential.use'));
    },
  };
}
