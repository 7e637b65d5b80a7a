// The real MCP client runs unchanged by base URL against a real MCP server over HTTP, in both eras of the protocol: its
// URL leads through the door, and its bearer token is a use lease's. The client never sees the value.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { startUpstream } from '../broker/upstream.ts';
import { until } from '../kit/processes.ts';
import { startTestService } from '../kit/service.ts';
import { storeWithTargets, VALUE } from '../kit/use.ts';

const STEPS = 5;
const TIMEOUT_MS = 120_000;

/** A server with sessions, one for each client. */
interface Session {
  readonly transport: NodeStreamableHTTPServerTransport;
  readonly server: McpServer;
}
const sessions = new Map<string, Session>();
const closedSessions: string[] = [];
/** The requests as the upstream received them. */
const requests: { method: string; session: unknown; response: ServerResponse }[] = [];

function createServer(authorization: string | undefined): McpServer {
  const server = new McpServer({ name: 'double', version: '1.0.0' }, { capabilities: { logging: {}, tools: {} } });
  server.registerTool('whoami', { description: 'Repeats the authority of the session' }, () => ({
    content: [{ type: 'text', text: `you are ${authorization}` }],
  }));
  server.registerTool('count', { description: 'Reports its progress' }, async ({ mcpReq }) => {
    const progressToken = mcpReq._meta?.progressToken ?? assert.fail('the client asked for progress');
    for (let progress = 1; progress <= STEPS; progress++) {
      await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: STEPS } });
      await new Promise((resolve) => setImmediate(resolve));
    }
    return { content: [{ type: 'text', text: 'counted' }] };
  });
  return server;
}

async function openSession(request: IncomingMessage): Promise<Session> {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, session),
    onsessionclosed: (id) => void closedSessions.push(id),
  });
  const session = { transport, server: createServer(request.headers.authorization) };
  await session.server.connect(transport);
  return session;
}

const modern = createMcpHandler(({ authInfo }) => createServer(`Bearer ${authInfo?.token}`));
const answerModern = toNodeHandler(modern);

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { 'mcp-session-id': session, authorization } = request.headers;
  requests.push({ method: request.method ?? '', session, response });
  if (authorization !== `Bearer ${VALUE}`) {
    response.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
  } else if (request.url === '/modern/mcp') {
    const authInfo = { token: VALUE, clientId: 'double', scopes: [] };
    await answerModern(Object.assign(request, { method: request.method ?? '', url: '/mcp', auth: authInfo }), response);
  } else if (request.url !== '/mcp') {
    response.writeHead(404).end();
  } else {
    const { transport } = sessions.get(String(session)) ?? (await openSession(request));
    await transport.handleRequest(request, response);
  }
}

const upstream = await startUpstream({ after }, (request, response) => void answer(request, response));
const service = await startTestService({ after });
await storeWithTargets(service, 'mcp/key', upstream);
const agent = await service.agent('mcp', { 'mcp/*': ['use'] });
after(() => modern.close());

async function connect(path: string, options: ClientOptions = {}) {
  const issued = await agent.post('/api/v1/leases/use', { path: 'mcp/key', ttl: 300 });
  const { token, base_url } = issued.body.data;
  const transport = new StreamableHTTPClientTransport(new URL(`${base_url}${path}`), {
    authProvider: { token: async () => token },
  });
  const errors: Error[] = [];
  const client = new Client({ name: 'test', version: '0.0.0' }, options);
  client.onerror = (error) => void errors.push(error);
  await client.connect(transport);
  return { client, transport, errors };
}

/** The response to the client's GET, in which the server sends notifications; it is opened in the background. */
async function streamOf({ sessionId }: StreamableHTTPClientTransport): Promise<ServerResponse> {
  assert.notEqual(sessionId, undefined, 'the header with the session is passed on');
  const find = () => requests.find(({ method, session }) => method === 'GET' && session === sessionId)?.response;
  await until(
    () => find()?.headersSent === true,
    TIMEOUT_MS,
    () => 'the client opened no stream',
  );
  return find() ?? assert.fail();
}

const textOf = (result: Awaited<ReturnType<Client['callTool']>>): string =>
  result.content.map((part) => (part.type === 'text' ? part.text : part.type)).join();

async function useTools(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ['whoami', 'count'],
  );
  assert.equal(textOf(await client.callTool({ name: 'whoami' })), 'you are Bearer [secret]');
  const progress: number[] = [];
  const counted = await client.callTool({ name: 'count' }, { onprogress: (each) => void progress.push(each.progress) });
  assert.equal(textOf(counted), 'counted');
  assert.deepEqual(
    progress,
    Array.from({ length: STEPS }, (_, at) => at + 1),
  );
}

test('a client with a session initialises, uses tools, gets notifications in its stream, and closes the session', async () => {
  const { client, transport, errors } = await connect('/mcp');
  assert.deepEqual(client.getServerVersion(), { name: 'double', version: '1.0.0' });
  await useTools(client);
  const stream = await streamOf(transport);
  const id = transport.sessionId ?? '';
  const { server } = sessions.get(id) ?? assert.fail('the server knows the session');
  const changed = Promise.withResolvers<void>();
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve());
  server.sendToolListChanged();
  await changed.promise;
  const said: unknown[] = [];
  const heard = Promise.withResolvers<void>();
  client.setNotificationHandler('notifications/message', ({ params }) => {
    said.push(params.data);
    if (said.length === STEPS) heard.resolve();
  });
  for (let at = 0; at < STEPS; at++) await server.sendLoggingMessage({ level: 'info', data: `${at} ${VALUE}` });
  await heard.promise;
  assert.deepEqual(
    said,
    Array.from({ length: STEPS }, (_, at) => `${at} [secret]`),
  );
  await transport.terminateSession();
  assert.deepEqual(closedSessions, [id]);
  assert.equal(stream.writableEnded || stream.destroyed, true, 'the server ended the stream');
  await client.close();
  assert.deepEqual(errors, []);
  assert.deepEqual([...new Set(requests.map(({ method }) => method))].toSorted(), ['DELETE', 'GET', 'POST']);
});

test('a client that is closed ends its stream at the server', async () => {
  const { client, transport } = await connect('/mcp');
  const response = await streamOf(transport);
  const closed = response.destroyed ? Promise.resolve() : once(response, 'close');
  await client.close();
  await closed;
});

test('a client of the newer protocol, without sessions, uses tools and listens', async () => {
  const { client, errors } = await connect('/modern/mcp', { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await useTools(client);
  const changed = Promise.withResolvers<void>();
  client.setNotificationHandler('notifications/tools/list_changed', () => changed.resolve());
  const subscription = await client.listen({ toolsListChanged: true });
  modern.notify.toolsChanged();
  await changed.promise;
  await subscription.close();
  await client.close();
  assert.deepEqual(errors, []);
});

test('the end of the agent cuts the stream, and the client is told so', async () => {
  const { client, transport, errors } = await connect('/mcp');
  const response = await streamOf(transport);
  const closed = once(response, 'close');
  assert.equal((await service.admin.delete('/api/v1/agents/mcp')).status, 204);
  await closed;
  await assert.rejects(client.listTools());
  await client.close();
  assert.notEqual(errors.length, 0);
});
