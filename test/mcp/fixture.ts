// A vault with an agent, an HTTPS upstream, an MCP server that acts as the agent, and the SDK's client over pipes. All
// messages are recorded, so that a test can search them for a value.

import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type CallToolResult, Client } from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { fileSigner, Leasehold, type LeaseholdOptions } from '../../src/client/leasehold.ts';
import { type Mcp, openMcp, serveOverStdio } from '../../src/mcp/mcp-server.ts';
import { startUpstream } from '../broker/upstream.ts';
import type { Scope } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { targetOf, VALUE } from '../kit/use.ts';

export const KEY_PATH = 'api/key';

export interface Stage {
  readonly service: TestService;
  /** The upstream's origin. */
  readonly origin: string;
  /** The heads of all requests that the upstream got. */
  readonly requests: readonly IncomingMessage[];
  /** Acts as the agent `builder` unless the options name another. */
  client(options?: Partial<LeaseholdOptions>): Leasehold;
  /** An MCP server that acts as the client, and the messages for its operator. */
  open(client?: Leasehold): Promise<{ readonly mcp: Mcp; readonly logged: readonly string[] }>;
  /** Stores VALUE at the path, with a target of these fields. */
  store(path: string, fields?: Readonly<Record<string, unknown>>): Promise<void>;
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** `api/key` holds VALUE. The agent `builder` may use it at `/v1/*` of the upstream, with GET and POST. */
export async function startStage(scope: Scope, handler: Handler, approvalHoldMs?: number): Promise<Stage> {
  const timeouts = approvalHoldMs === undefined ? {} : { approvalHoldMs };
  const service = await startTestService(scope, [], undefined, undefined, timeouts);
  await service.agent('builder', { 'api/*': ['use', 'list'], 'prod/*': ['list'] });
  const upstream = await startUpstream(scope, (request, response) => void handler(request, response));
  const sign = fileSigner(join(service.dataDir, 'agents/builder/private_key.pem'));
  const stage: Stage = {
    service,
    origin: `https://127.0.0.1:${upstream.port}`,
    requests: upstream.requests,
    client: ({ token, ...options } = {}) =>
      new Leasehold({
        address: service.address,
        retries: 0,
        ...(token === undefined ? { agent: { name: 'builder', sign } } : { token }),
        ...options,
      }),
    async open(client = stage.client()) {
      const logged: string[] = [];
      const log = (line: string): void => void logged.push(line);
      const mcp = await openMcp({ client, serverUrl: service.address, version: '0.0.0', log });
      scope.after(() => mcp.close());
      return { mcp, logged };
    },
    async store(path, fields = {}) {
      await service.admin.post('/api/v1/credentials', { path, value: VALUE });
      const target = { ...targetOf(upstream, { paths: ['/v1/*'], methods: ['GET', 'POST'] }), ...fields };
      const put = await service.admin.put(`/api/v1/targets/${path}`, {
        targets: [target],
        placement: { kind: 'bearer' },
      });
      assert.equal(put.status, 200, put.text);
    },
  };
  await stage.store(KEY_PATH);
  return stage;
}

export interface Connected {
  readonly client: Client;
  /** Everything that crossed the pipes, both ways. */
  transcript(): string;
  /** The data of the call's response, which must not be an error. */
  use(tool: string, input?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** The sentence of the call's error. */
  refusal(tool: string, input?: Record<string, unknown>): Promise<string>;
}

export async function connect(
  scope: Scope,
  mcp: Mcp,
  era: 'legacy' | 'auto' = 'auto',
  onElicit: ((url: string) => void | Promise<void>) | null = null,
): Promise<Connected> {
  const capabilities = onElicit === null ? {} : { elicitation: { url: {} } };
  const client = new Client({ name: 'test', version: '0.0.0' }, { versionNegotiation: { mode: era }, capabilities });
  if (onElicit !== null) {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      if (params.mode === 'url') await onElicit(params.url);
      return { action: 'accept' };
    });
  }
  const transcript: string[] = [];
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  for (const stream of [stdin, stdout]) stream.on('data', (chunk) => transcript.push(String(chunk)));
  const stopping = new AbortController();
  const served = serveOverStdio(mcp, { stdin, stdout }, stopping.signal, (line) => transcript.push(line));
  scope.after(async () => {
    await client.close();
    stopping.abort();
    await served;
  });
  // The SDK's transport of lines works in either direction.
  await client.connect(new StdioServerTransport(stdout, stdin));
  const call = (name: string, input: Record<string, unknown>) => client.callTool({ name, arguments: input });
  return {
    client,
    transcript: () => transcript.join(''),
    async use(tool, input = {}) {
      const { isError, structuredContent, content } = await call(tool, input);
      assert.notEqual(isError, true, textOf(content));
      return structuredContent as Record<string, unknown>;
    },
    async refusal(tool, input = {}) {
      const { isError, content } = await call(tool, input);
      assert.equal(isError, true, textOf(content));
      return textOf(content);
    },
  };
}

export function textOf(content: CallToolResult['content']): string {
  return content.map((each) => (each.type === 'text' ? each.text : each.type)).join('\n');
}

/** Whether the text contains the value: bare, in base64 at any offset, or in hex. */
export function shows(text: string, value = VALUE): boolean {
  const bytes = Buffer.from(value);
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .slice(offset === 0 ? 0 : 4)
      .replace(/=+$/, '')
      .slice(0, -2),
  );
  return [value, ...base64, bytes.toString('hex')].some((form) => text.includes(form));
}
