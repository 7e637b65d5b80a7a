// A real service, an agent with grants, an MCP server that acts as it, and the SDK's client over either transport. All
// messages are recorded, so that a test can search them for a value.

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type CallToolResult, Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { fileSigner, Leasehold } from '../../src/client/leasehold.ts';
import { parseAllowList } from '../../src/mcp/allowlist.ts';
import { type HttpServing, serveOverHttp } from '../../src/mcp/http.ts';
import { type Mcp, type McpParts, openMcp } from '../../src/mcp/server.ts';
import { serveOverStdio } from '../../src/mcp/stdio.ts';
import { makeToken } from '../../src/mcp/token.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';

/** Long, and with characters that every encoding changes. */
export const VALUE = 'Zx9!corr&ect"ho+rse/bat=tery%40staple~ü';
export const EVERYTHING = { 'prod/*': ['retrieve', 'list'] };

/** Of a server that hands out the least. */
export const LEAST: Omit<McpParts, 'client'> = {
  consoleAddress: null,
  filesDir: null,
  commands: [],
  allowsValues: false,
  version: '0',
  log: () => undefined,
};

export interface Stage {
  readonly service: TestService;
  readonly mcp: Mcp;
  readonly filesDir: string;
  /** The messages for the operator. */
  readonly logged: string[];
  readonly agent: Leasehold;
  /** Ends the session that the server uses, behind its back. */
  endSession(): Promise<void>;
}

export interface StageOptions {
  readonly grants?: Readonly<Record<string, readonly string[]>>;
  /** TOML. */
  readonly commands?: string;
  readonly allowsValues?: boolean;
  readonly hasFiles?: boolean;
  /** How long a request is held that waits for an approval. */
  readonly approvalHoldMs?: number;
}

/** `prod/db/password` holds VALUE; the agent is `builder`. */
export async function startStage(scope: Scope, options: StageOptions = {}): Promise<Stage> {
  const { grants = EVERYTHING, commands = null, allowsValues = false, hasFiles = true } = options;
  const { approvalHoldMs } = options;
  const timeouts = approvalHoldMs === undefined ? {} : { approvalHoldMs };
  const service = await startTestService(scope, [], undefined, undefined, timeouts);
  await service.agent('builder', grants);
  const credential = { path: 'prod/db/password', value: VALUE, type: 'password', description: 'of the database' };
  await service.admin.post('/api/v1/credentials', credential);
  const filesDir = temporaryDirectory(scope);
  chmodSync(filesDir, 0o700);
  const keyFile = join(service.dataDir, 'agents/builder/private_key.pem');
  let token = '';
  const client = () =>
    new Leasehold({
      address: service.address,
      agent: { name: 'builder', sign: fileSigner(keyFile) },
      retries: 0,
      fetch(address, init) {
        token = new Headers(init?.headers).get('authorization')?.replace('Bearer ', '') ?? token;
        return fetch(address, init);
      },
    });
  const logged: string[] = [];
  const mcp = await openMcp({
    client: client(),
    consoleAddress: service.address,
    filesDir: hasFiles ? filesDir : null,
    commands: commands === null ? [] : parseAllowList(commands),
    allowsValues,
    version: '0.0.0',
    log: (line) => void logged.push(line),
  });
  scope.after(() => mcp.close());
  const endSession = async (): Promise<void> => void (await service.as(token).delete('/auth/session'));
  return { service, mcp, filesDir, logged, agent: client(), endSession };
}

export interface Calls {
  /** The data of the call's response, which must not be an error. */
  use(tool: string, input?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** The sentence of the call's error. */
  refusal(tool: string, input?: Record<string, unknown>): Promise<string>;
}

export interface Connected extends Calls {
  readonly client: Client;
  /** Everything that crossed the transport, both ways. */
  transcript(): string;
}

export const TRANSPORTS = ['stdio', 'http'] as const;
export type TransportName = (typeof TRANSPORTS)[number];

export async function connect(
  scope: Scope,
  mcp: Mcp,
  over: TransportName,
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
  if (over === 'stdio') await connectPipes(scope, mcp, client, transcript);
  else {
    const { serving, token } = await startHttp(scope, mcp);
    await client.connect(httpTransport(serving.url, token, transcript));
  }
  scope.after(() => client.close());
  return { client, transcript: () => transcript.join(''), ...callsOf(client) };
}

export function callsOf(client: Client): Calls {
  const call = (name: string, input: Record<string, unknown>): Promise<CallToolResult> =>
    client.callTool({ name, arguments: input });
  return {
    async use(tool, input = {}) {
      const { isError, structuredContent, content } = await call(tool, input);
      if (isError === true) throw new Error(`${tool} was rejected: ${textOf(content)}`);
      return structuredContent as Record<string, unknown>;
    },
    async refusal(tool, input = {}) {
      const { isError, content } = await call(tool, input);
      if (isError !== true) throw new Error(`${tool} was not rejected: ${textOf(content)}`);
      return textOf(content);
    },
  };
}

function textOf(content: CallToolResult['content']): string {
  return content.map((each) => (each.type === 'text' ? each.text : each.type)).join('\n');
}

async function connectPipes(scope: Scope, mcp: Mcp, client: Client, transcript: string[]): Promise<void> {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  for (const stream of [stdin, stdout]) stream.on('data', (chunk) => transcript.push(String(chunk)));
  const stopping = new AbortController();
  const served = serveOverStdio(mcp, { stdin, stdout }, stopping.signal, (line) => transcript.push(line));
  scope.after(async () => {
    stopping.abort();
    await served;
  });
  // The SDK's transport of lines works in either direction.
  await client.connect(new StdioServerTransport(stdout, stdin));
}

export async function startHttp(scope: Scope, mcp: Mcp): Promise<{ serving: HttpServing; token: string }> {
  const token = makeToken();
  const serving = await serveOverHttp(mcp, { host: '127.0.0.1', port: 0 }, token, () => undefined);
  scope.after(() => serving.close());
  return { serving, token: token.reveal() };
}

export function httpTransport(url: string, token: string, transcript: string[] = []): StreamableHTTPClientTransport {
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
    async fetch(address, init) {
      transcript.push(String(init?.body ?? ''));
      const response = await fetch(address, init);
      const text = await response.text();
      transcript.push(text);
      const { status, headers } = response;
      return new Response(status === 202 || text === '' ? null : text, { status, headers });
    },
  });
}

/** The value as it may have been written down: bare, in JSON, base64 at any offset, base64url, percent, hex. */
export function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .slice(offset === 0 ? 0 : 4)
      .replace(/=+$/, '')
      .slice(0, -2),
  );
  return [
    value,
    JSON.stringify(value).slice(1, -1),
    JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1),
    ...base64,
    ...base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_')),
    encodeURIComponent(value),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
  ];
}

export function shows(text: string, value = VALUE): boolean {
  return formsOf(value).some((form) => text.includes(form));
}
