/** A test client of the server: plain HTTP over a real socket, responses unprocessed. */
import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';

/** Untyped JSON: the test's assertions check its shape. */
type Json = ReturnType<typeof JSON.parse>;

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined if it is not JSON. */
  readonly body: Json;
}

export interface Client {
  /** `body` is sent as JSON; `headers` are added. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<TestResponse>;
  get(path: string): Promise<TestResponse>;
  post(path: string, body?: unknown): Promise<TestResponse>;
  put(path: string, body: unknown): Promise<TestResponse>;
  delete(path: string): Promise<TestResponse>;
}

const connections = new Agent({ keepAlive: true });

/** `token` null sends no Authorization header. WHY not fetch: it takes several times the processor time. */
export function createClient(address: string, token: string | null): Client {
  const call: Client['call'] = async (method, path, body, headers = {}) => {
    const sent = body === undefined ? '' : JSON.stringify(body);
    const outgoing = request(address + path, {
      method,
      agent: connections,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) }),
        ...headers,
      },
    });
    outgoing.end(sent);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    const text = await readText(response);
    return { status: response.statusCode ?? 0, headers: headersOf(response), text, body: parse(text) };
  };
  return {
    call,
    get: (path) => call('GET', path),
    post: (path, body) => call('POST', path, body),
    put: (path, body) => call('PUT', path, body),
    delete: (path) => call('DELETE', path),
  };
}

function headersOf({ headersDistinct }: IncomingMessage): Headers {
  const headers = new Headers();
  for (const [name, values = []] of Object.entries(headersDistinct))
    for (const value of values) headers.append(name, value);
  return headers;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The agent's private key from the data directory. */
export function readAgentKey(dataDir: string, name: string): KeyObject {
  return createPrivateKey(readFileSync(join(dataDir, 'agents', name, 'private_key.pem')));
}

/** Requests a challenge and verifies it; resolves to the response of verify. */
export async function verifyAs(address: string, name: string, key: KeyObject): Promise<TestResponse> {
  const anonymous = createClient(address, null);
  const { body } = await anonymous.post('/auth/challenge', { agent_name: name });
  const { challenge_id, nonce } = body.data;
  const signature = sign(null, Buffer.from(nonce, 'base64'), key).toString('base64');
  return anonymous.post('/auth/verify', { challenge_id, agent_name: name, signature });
}

/** Logs in; resolves to the session's token. */
export async function logIn(address: string, name: string, key: KeyObject): Promise<string> {
  const answer = await verifyAs(address, name, key);
  if (answer.status !== 200) throw new Error(`login of ${name} got ${answer.status}: ${answer.text}`);
  return answer.body.data.session_id;
}
