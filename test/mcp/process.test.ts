// `leasehold mcp` as a process: the configurations of docs/mcp.md, the lines of the protocol, and its end.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import { after, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse } from 'smol-toml';
import { serveOverStdio, splitLines } from '../../src/mcp/stdio.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/processes.ts';
import { startStage } from './fixture.ts';

const MAX_MESSAGE_BYTES = 1024 * 1024;
const TIMEOUT_MS = 120_000;

const stage = await startStage({ after }, (_, response) => void response.end());
const { service } = stage;
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

test('the configurations on the page start the server, whose tools and arguments are on the page; texts of the vault are escaped, and a signal ends it', async (t) => {
  assert.equal(entries.length, 3);
  for (const { command, args } of entries)
    assert.deepEqual([command, ...args], ['leasehold', 'mcp', '--agent', 'coder']);
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
