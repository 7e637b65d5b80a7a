// `leasehold mcp` as a process: the configurations of docs/mcp.md, the lines of the protocol, and its end; and a tool
// that waits for an approval, with a client that opens links for its user and with one that cannot.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { after, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse } from 'smol-toml';
import { serveOverStdio, splitLines } from '../../src/mcp/mcp-server.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { addOperator } from '../kit/operators.ts';
import { until } from '../kit/processes.ts';
import { connect, KEY_PATH, startStage, textOf } from './fixture.ts';

const MAX_MESSAGE_BYTES = 1024 * 1024;
const TIMEOUT_MS = 120_000;

/** Short, because a call without an answer takes as long. */
const HOLD_MS = 200;
const stage = await startStage({ after }, (_, response) => void response.end('done'), HOLD_MS);
const { service, requests } = stage;
const home = temporaryDirectory({ after });
const keyFile = join(service.dataDir, 'agents/builder/private_key.pem');
const [program, ...first] = COMMAND;

/** Reads the answers of a server from its lines. */
function readAnswers(stdout: Readable) {
  let text = '';
  stdout.on('data', (chunk) => (text += chunk));
  const answers = () =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const isAnswered = (id: number) => answers().some((each) => each.id === id);
  return {
    answers,
    async answer(id: number) {
      await until(
        () => isAnswered(id),
        TIMEOUT_MS,
        () => text,
      );
      return answers().find((each) => each.id === id);
    },
  };
}

/** A server on pipes of this process, without a client. */
async function serve() {
  const { mcp } = await stage.open();
  const [stdin, stdout] = [new PassThrough(), new PassThrough()];
  const logged: string[] = [];
  const ended = serveOverStdio(mcp, { stdin, stdout }, new AbortController().signal, (line) => void logged.push(line));
  return { stdin, stdout, ended, logged, ...readAnswers(stdout) };
}

const line = (id: number, method: string, params: object): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
const INITIALIZE = line(1, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '0' },
});
const explain = (path: string) => ({ name: 'explain_access', arguments: { path } });

const page = readFileSync(join(import.meta.dirname, '../../docs/mcp.md'), 'utf8');

interface Entry {
  readonly command: string;
  readonly args: readonly string[];
}
const blocks = [...page.matchAll(/^```(json|toml|sh)\n([\s\S]*?)^```$/gm)];
const entries = blocks.flatMap(([, kind, text = '']): Entry[] => {
  if (kind === 'sh') {
    const [, words] = /^claude mcp add leasehold -- (.*)$/m.exec(text) ?? [];
    const [command, ...args] = words?.split(' ') ?? [];
    return command === undefined ? [] : [{ command, args }];
  }
  const read = kind === 'json' ? JSON.parse(text) : parse(text);
  return Object.values(read['mcpServers'] ?? read['mcp_servers'] ?? {});
});

const TOOL = 'http_request';
const POLICY = { principal: 'agent:builder', resources: ['api/*'], actions: ['use'] };
const { mcp } = await stage.open();
const approver = await addOperator(service, 'alice', ['approver']);
const { client } = await connect({ after }, mcp);
let calls = 0;

/** A request that no other test makes: an approval is given for one. */
const newRequest = () => ({ path: KEY_PATH, url: `${stage.origin}/v1/${++calls}` });

async function answer(id: string, verb: 'approve' | 'deny', fields: object = {}): Promise<void> {
  const { nonce } = (await approver.get(`/api/v1/approvals/${id}`)).body.data;
  const { status, text } = await approver.post(`/api/v1/approvals/${id}/${verb}`, { nonce, ...fields });
  assert.equal(status, 200, text);
}

test('the configurations on the page start the server, whose tools and arguments are on the page; texts of the vault are escaped, and a signal ends it', async (t) => {
  assert.equal(entries.length, 3);
  for (const { command, args } of entries)
    assert.deepEqual([command, ...args], ['leasehold', 'mcp', '--agent', 'model']);
  const between = await standBetween(t, service);
  const session = { session_id: 'x', agent_name: '\u001b[31mRED\nline\u202e', expires_at: '2099-01-01T00:00:00Z' };
  const body = JSON.stringify({ data: { ...session, expires_in: 3600 } });
  const headers = { 'content-type': 'application/json' };
  between.next({ status: 200, headers, body }, ({ method, path }) => `${method} ${path}` === 'GET /auth/session');
  const transport = new StdioClientTransport({
    command: program,
    args: [...first, 'mcp', '--agent', 'builder'],
    env: { HOME: home, ...COMPILED, LEASEHOLD_ADDR: between.address, LEASEHOLD_KEY_FILE: keyFile },
    cwd: home,
    stderr: 'pipe',
  });
  let said = '';
  transport.stderr?.on('data', (chunk) => (said += chunk));
  const client = new Client({ name: 'test', version: '0' });
  t.after(() => client.close());
  await client.connect(transport);
  const { tools } = await client.listTools();
  assert.deepEqual([tools[0]?.name, tools.length], ['http_request', 3]);
  for (const { name, inputSchema } of tools) {
    for (const word of [name, ...Object.keys(inputSchema.properties ?? {})]) {
      assert.equal(page.includes(`\`${word}\``), true, word);
    }
  }
  const closed = new Promise<void>((resolve) => {
    client.onclose = resolve;
  });
  process.kill(transport.pid ?? assert.fail(), 'SIGTERM');
  await closed;
  assert.match(said, /^leasehold mcp: acts as \\u001b\[31mRED\\u000aline\\u202e at http:[^\n]*\n/);
});

test('it ends with its output', async () => {
  const { stdin, stdout, answer, ended } = await serve();
  stdin.write(INITIALIZE);
  await answer(1);
  stdout.destroy(new Error('EPIPE'));
  stdin.write(line(2, 'tools/list', {}));
  await ended;
});

test('odd messages and one of more than 1 MiB get errors, the next ones are served, and the end of stdin ends it', async () => {
  const { stdin, answer, answers, logged, ended } = await serve();
  stdin.write(INITIALIZE);
  await answer(1);
  for (const odd of ['not JSON', '[]', '{}', 'null', '{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}', '']) {
    stdin.write(`${odd}\n`);
  }
  stdin.write(line(2, 'no/such', {}));
  assert.equal((await answer(2)).error.code, -32_601);
  const empty = line(3, 'tools/call', explain('')).length;
  stdin.write(line(3, 'tools/call', explain('x'.repeat(MAX_MESSAGE_BYTES - empty + 1))));
  assert.equal('result' in (await answer(3)), true, 'a message of exactly 1 MiB is served');
  // The next message arrives together with the end of the long one.
  stdin.write(line(4, 'tools/call', explain('x'.repeat(1_100_000))) + line(5, 'tools/list', {}));
  assert.equal((await answer(5)).result.tools.length, 3);
  assert.deepEqual(
    answers().filter(({ error }) => error?.message.includes('bytes')),
    [{ jsonrpc: '2.0', id: null, error: { code: -32_600, message: 'a message has at most 1048576 bytes' } }],
  );
  assert.ok(logged.includes('a message was rejected: a message has at most 1048576 bytes'));
  assert.equal(logged.join('').includes('xxxx'), false);
  stdin.end();
  await ended;
});

test('a long line is reported once and not stored, however it is divided', async () => {
  for (const pieceBytes of [1, 7, 1000, 10_000]) {
    let rejected = 0;
    const lines = splitLines(1000, () => rejected++);
    const got: string[] = [];
    lines.on('data', (chunk) => got.push(String(chunk)));
    const bytes = Buffer.from(`first\n${'x'.repeat(5000)}\n\nlast\nwithout end`);
    for (let at = 0; at < bytes.length; at += pieceBytes) lines.write(bytes.subarray(at, at + pieceBytes));
    assert.equal(lines.writableLength + lines.readableLength, 0);
    lines.end();
    await once(lines, 'end');
    assert.deepEqual([rejected, got], [1, ['first\n', '\n', 'last\n']]);
  }
});

test('a tool waits for an approval, without links: the result is pending, and the same call again waits for the same approval', async () => {
  await service.admin.put('/api/v1/policies/asks', { ...POLICY, approval: { for: 'use' } });
  const input = newRequest();
  const first = await client.callTool({ name: TOOL, arguments: input });
  const { approval_id: id, link, ...others } = first.structuredContent as Record<string, unknown>;
  assert.equal(first.isError, true);
  assert.deepEqual(others, { code: 'APPROVAL_PENDING', outcome: 'pending', is_refusal: false });
  assert.equal(link, `${service.address}/console/approvals/${id}`);
  const text = textOf(first.content);
  assert.match(text, /^APPROVAL_PENDING: .*none has answered yet\. This is not a refusal/);
  assert.match(text, /Nothing was sent\. Call this tool again with the same arguments to continue waiting\./);
  assert.ok(text.includes(`at ${link} or with: leasehold approve ${id}.`));
  assert.equal(requests.length, 0);
  await answer(String(id), 'approve');
  const second = await client.callTool({ name: TOOL, arguments: input });
  assert.deepEqual([second.isError, requests.length], [undefined, 1]);
  assert.equal((second.structuredContent as { body: string }).body, 'done');
});

test('a tool waits for an approval, with links: the user opens it, and the call ends with its result', async (t) => {
  const opened: string[] = [];
  const linking = await connect(t, mcp, 'auto', async (url) => {
    opened.push(url);
    await answer(url.slice(url.lastIndexOf('/') + 1), 'approve');
  });
  const before = requests.length;
  assert.equal((await linking.use(TOOL, newRequest()))['body'], 'done');
  assert.equal(opened.length, 1);
  assert.match(opened[0] ?? '', new RegExp(`^${service.address}/console/approvals/[0-9a-f-]{36}$`));
  assert.equal(requests.length - before, 1);
});

test('with links on the earlier protocol: a user who does not answer is asked once, then it is pending', async (t) => {
  const input = newRequest();
  let asked = 0;
  const linking = await connect(t, mcp, 'legacy', () => void asked++);
  for (let call = 0; call < 2; call++) {
    const { structuredContent } = await linking.client.callTool({ name: TOOL, arguments: input });
    assert.equal((structuredContent as { outcome: string }).outcome, 'pending');
  }
  assert.equal(asked, 1);
});

test('the outcomes without an approval are told apart by a program and by a reader', async () => {
  const call = async (input: Record<string, unknown>) => {
    const { isError, structuredContent, content } = await client.callTool({ name: TOOL, arguments: input });
    assert.equal(isError, true);
    const { outcome, is_refusal, approval_id } = structuredContent as Record<string, unknown>;
    return { told: [outcome, is_refusal], id: String(approval_id), text: textOf(content) };
  };
  const waiting = async (input: Record<string, unknown>): Promise<string> => {
    const { told, id } = await call(input);
    assert.deepEqual(told, ['pending', false]);
    return id;
  };
  const ends = async (input: Record<string, unknown>, told: readonly unknown[], text: RegExp): Promise<void> => {
    const ended = await call(input);
    assert.deepEqual(ended.told, told);
    assert.match(ended.text, text);
  };
  const [first, second, third] = [newRequest(), newRequest(), newRequest()];
  await answer(await waiting(first), 'deny', { reason: 'wrong account' });
  const denied = /^APPROVAL_DENIED: .*by operator:alice: wrong account\. Do not send the request again\.$/;
  await ends(first, ['denied', true], denied);
  await service.admin.delete(`/api/v1/approvals/${await waiting(second)}`);
  await ends(second, ['withdrawn', false], /^APPROVAL_WITHDRAWN: .*This is not a refusal/);
  await service.admin.put('/api/v1/policies/asks', { ...POLICY, approval: { for: 'use', timeout: 1 } });
  let late = await call(third);
  while (late.told[0] === 'pending') late = await call(third);
  assert.deepEqual(late.told, ['timed_out', false]);
  assert.match(late.text, /^APPROVAL_TIMED_OUT: .*This is not a refusal/);
  await service.admin.put('/api/v1/policies/asks', { ...POLICY, approval: { for: 'use', quorum: 3 } });
  await ends(newRequest(), ['no_approver', false], /^NO_APPROVER: /);
});
