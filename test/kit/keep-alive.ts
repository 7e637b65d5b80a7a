/** A client for many calls over keep-alive connections. */
import { Agent, request } from 'node:http';
import type { Scope } from './directory.ts';

interface KeepAliveResponse {
  readonly status: number;
  readonly text: string;
}

export type Call = (method: string, path: string, token: string | null, body?: unknown) => Promise<KeepAliveResponse>;

/** Less than the service’s 60 s, so that no request is sent while the service closes the connection. */
const IDLE_MS = 30_000;

export function keepAlive(scope: Scope, address: string, connections = 64): Call {
  const agent = new Agent({ keepAlive: true, maxSockets: connections, timeout: IDLE_MS });
  scope.after(() => agent.destroy());
  const { hostname, port } = new URL(address);
  return (method, path, token, body) =>
    new Promise((resolve, reject) => {
      const text = body === undefined ? null : JSON.stringify(body);
      const headers = {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      };
      const sent = request({ agent, hostname, port, method, path, headers }, (response) => {
        let answer = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          answer += chunk;
        });
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text: answer }));
        response.on('error', reject);
      });
      sent.on('error', reject);
      sent.end(text ?? undefined);
    });
}
