// A small server that answers as the documents of Vault and OpenBao say that a KV v2 mount does, and writes down what it was asked.

import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Scope } from '../kit/directory.ts';

/** The fields of the newest version, as JSON; or what it is instead. */
export type Stored = object | string | 'deleted' | 'destroyed' | 'forbidden' | 'vanished';

export interface Kv2Server {
  readonly address: string;
  readonly asked: { readonly method: string; readonly url: string; readonly headers: IncomingHttpHeaders }[];
  /** How many requests were under way at once, at most. */
  atOnce(): number;
}

interface Options {
  readonly token?: string;
  readonly mount?: string;
  /** Answers first; true where it did. */
  answer?(url: string, response: ServerResponse, count: number): boolean;
}

const METADATA = { created_time: '2026-01-01T00:00:00Z', custom_metadata: null, version: 2 };

/** Folders that begin with `locked` may not be listed. */
export async function startKv2Server(
  scope: Scope,
  secrets: Readonly<Record<string, Stored>>,
  { token = 'hvs.test', mount = 'secret', answer }: Options = {},
): Promise<Kv2Server> {
  const asked: Kv2Server['asked'] = [];
  let [underWay, most] = [0, 0];
  const server = createServer(async (request, response) => {
    const url = request.url ?? '';
    asked.push({ method: request.method ?? '', url, headers: request.headers });
    most = Math.max(most, ++underWay);
    await new Promise((resolve) => setTimeout(resolve, 2));
    underWay -= 1;
    const say = (status: number, body: unknown): void => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    };
    if (answer?.(url, response, asked.length) === true) return;
    if (request.headers['x-vault-token'] !== token) return say(403, { errors: ['permission denied'] });
    const [path = '', query] = url.split('?');
    const prefix = (kind: string): string => `/v1/${mount}/${kind}/`;
    if (path.startsWith(prefix('metadata')) && query === 'list=true') {
      const folder = decodeURIComponent(path.slice(prefix('metadata').length));
      if (folder.startsWith('locked')) return say(403, { errors: ['permission denied'] });
      const below = Object.keys(secrets).filter((key) => key.startsWith(folder));
      const keys = new Set(below.map((key) => /^[^/]*\/?/.exec(key.slice(folder.length))?.[0] ?? ''));
      return keys.size === 0 ? say(404, { errors: [] }) : say(200, { data: { keys: [...keys] } });
    }
    const name = path.startsWith(prefix('data')) ? decodeURIComponent(path.slice(prefix('data').length)) : '';
    const stored = secrets[name];
    if (stored === undefined || stored === 'vanished') return say(404, { errors: [] });
    if (stored === 'forbidden') return say(403, { errors: ['permission denied'] });
    if (stored === 'deleted' || stored === 'destroyed') {
      const metadata = { ...METADATA, deletion_time: '2026-02-01T00:00:00Z', destroyed: stored === 'destroyed' };
      return say(404, { data: { data: null, metadata } });
    }
    const data = typeof stored === 'string' ? stored : JSON.stringify(stored);
    say(
      200,
      `{"data":{"data":${data},"metadata":${JSON.stringify({ ...METADATA, deletion_time: '', destroyed: false })}}}`,
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  scope.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, atOnce: () => most };
}
