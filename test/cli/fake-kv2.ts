// A fake KV v2 server that responds as the documentation of Vault and OpenBao says, and records its requests.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Scope } from '../kit/directory.ts';

/** The fields of the newest version, as an object or JSON text, or its state. */
export type Stored = object | string | 'deleted' | 'destroyed' | 'forbidden' | 'vanished';

export interface Kv2Server {
  readonly address: string;
  readonly requests: { readonly method: string; readonly url: string; readonly headers: IncomingHttpHeaders }[];
}

interface Options {
  readonly token?: string;
  readonly mount?: string;
  /** Handles a request before the server does; returns true when it did. */
  answer?(url: string, response: ServerResponse, count: number): boolean;
}

const METADATA = { created_time: '2026-01-01T00:00:00Z', custom_metadata: null, version: 2 };

/** Listing a directory whose name begins with `locked` is forbidden. */
export async function startKv2Server(
  scope: Scope,
  secrets: Readonly<Record<string, Stored>>,
  { token = 'hvs.test', mount = 'secret', answer }: Options = {},
): Promise<Kv2Server> {
  const requests: Kv2Server['requests'] = [];
  const server = createServer((request, response) => {
    const url = request.url ?? '';
    requests.push({ method: request.method ?? '', url, headers: request.headers });
    const respond = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (answer?.(url, response, requests.length) === true) return;
    if (request.headers['x-vault-token'] !== token) return respond(403, { errors: ['permission denied'] });
    const [path = '', query] = url.split('?');
    const prefix = (kind: string): string => `/v1/${mount}/${kind}/`;
    if (path.startsWith(prefix('metadata')) && query === 'list=true') {
      const directory = decodeURIComponent(path.slice(prefix('metadata').length));
      if (directory.startsWith('locked')) return respond(403, { errors: ['permission denied'] });
      const below = Object.keys(secrets).filter((key) => key.startsWith(directory));
      const keys = new Set(below.map((key) => /^[^/]*\/?/.exec(key.slice(directory.length))?.[0] ?? ''));
      return keys.size === 0 ? respond(404, { errors: [] }) : respond(200, { data: { keys: [...keys] } });
    }
    const name = path.startsWith(prefix('data')) ? decodeURIComponent(path.slice(prefix('data').length)) : '';
    const stored = secrets[name];
    if (stored === undefined || stored === 'vanished') return respond(404, { errors: [] });
    if (stored === 'forbidden') return respond(403, { errors: ['permission denied'] });
    if (stored === 'deleted' || stored === 'destroyed') {
      const metadata = { ...METADATA, deletion_time: '2026-02-01T00:00:00Z', destroyed: stored === 'destroyed' };
      return respond(404, { data: { data: null, metadata } });
    }
    const data = typeof stored === 'string' ? stored : JSON.stringify(stored);
    respond(
      200,
      `{"data":{"data":${data},"metadata":${JSON.stringify({ ...METADATA, deletion_time: '', destroyed: false })}}}`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scope.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
  };
}
