// `leasehold mcp` as a process: the configurations of docs/mcp.md, the lines of the protocol, and its end.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse } from 'smol-toml';
import { splitLines } from '../../src/mcp/stdio.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { COMMAND, COMPILED } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { findPort } from '../kit/port.ts';
import { until } from '../kit/processes.ts';
import { startStage } from './fixture.ts';

const MAX_MESSAGE_BYTES = 1024 * 1024;
const TIMEOUT_MS = 120_000;

const stage = await startStage({ after }, (_, response) => void response.end());
const { service } = stage;
const home = temporaryDirectory({ after });
const keyFile = join(service.dataDir, 'agents/builder/private_key.pem');
const [program, ...first] = COMMAND;
const who = ['--agent', 'builder', '--key-file', keyFile];

/** The process without a client. */
function start(t: TestContext, address: string) {
  const words = ['mcp', '--address', address, ...who];
  const child = spawn(program, [...first, ...words], { env: { HOME: home, ...COMPILED }, cwd: home, stdio: 'pipe' });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  child.stdin.on('error', () => undefined);
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal);
  t.after(() => child.kill('SIGKILL'));
  const answers = () =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  return {
    child,
    ended,
    answers,
    stderr: () => stderr,
    async logs(text: string): Promise<void> {
      await until(
        () => stderr.includes(text),
        TIMEOUT_MS,
        () => stderr,
      );
    },
    async answer(id: number | null) {
      await until(
        () => answers().some((each) => each.id === id),
        TIMEOUT_MS,
        () => stdout + stderr,
      );
      return answers().find((each) => each.id === id);
    },
  };
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

test('the configurations on the page start the server, whose tools and arguments are on the page', async (t) => {
  assert.equal(entries.length, 3);
  for (const { command, args } of entries)
    assert.deepEqual([command, ...args], ['leasehold', 'mcp', '--agent', 'coder']);
  const transport = new StdioClientTransport({
    command: program,
    args: [...first, 'mcp', '--agent', 'builder'],
    env: { HOME: home, ...COMPILED, LEASEHOLD_ADDR: service.address, LEASEHOLD_KEY_FILE: keyFile },
    cwd: home,
    stderr: 'ignore',
  });
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
});

test('odd messages and one of more than 1 MiB get errors, the next ones are served, and stdin ends the process', async (t) => {
  const { child, answer, answers, stderr, ended } = start(t, service.address);
  child.stdin.write(INITIALIZE);
  await answer(1);
  for (const odd of ['not JSON', '[]', '{}', 'null', '{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}', '']) {
    child.stdin.write(`${odd}\n`);
  }
  child.stdin.write(line(2, 'no/such', {}));
  assert.equal((await answer(2)).error.code, -32_601);
  const empty = line(3, 'tools/call', explain('')).length;
  child.stdin.write(line(3, 'tools/call', explain('x'.repeat(MAX_MESSAGE_BYTES - empty + 1))));
  assert.equal('result' in (await answer(3)), true, 'a message of exactly 1 MiB is served');
  // The next message arrives together with the end of the long one.
  child.stdin.write(line(4, 'tools/call', explain('x'.repeat(1_100_000))) + line(5, 'tools/list', {}));
  assert.equal((await answer(5)).result.tools.length, 3);
  assert.deepEqual(
    answers().filter(({ error }) => error?.message.includes('bytes')),
    [{ jsonrpc: '2.0', id: null, error: { code: -32_600, message: 'a message has at most 1048576 bytes' } }],
  );
  assert.match(stderr(), /a message was rejected: a message has at most 1048576 bytes\n/);
  assert.equal(stderr().includes('xxxx'), false);
  child.stdin.end();
  assert.equal(await ended, 0);
});

test('it starts without the vault and prints its texts escaped; it ends by a signal and with its output', async (t) => {
  const away = start(t, `http://127.0.0.1:${await findPort()}`);
  const between = await standBetween(t, service);
  const session = {
    session_id: 'x',
    agent_name: '\u001b[31mRED\nsecond line\u202e',
    expires_at: '2099-01-01T00:00:00Z',
    expires_in: 3600,
  };
  const body = JSON.stringify({ data: session });
  const headers = { 'content-type': 'application/json' };
  between.next({ status: 200, headers, body }, ({ method, path }) => `${method} ${path}` === 'GET /auth/session');
  const odd = start(t, between.address);
  await Promise.all([away.logs('acts as'), odd.logs('acts as')]);
  assert.match(away.stderr(), /^leasehold mcp: the vault does not respond; tools return UNAVAILABLE until it does\n/);
  assert.match(odd.stderr(), /^leasehold mcp: acts as \\u001b\[31mRED\\u000asecond line\\u202e at http:[^\n]*\n$/);
  away.child.kill('SIGTERM');
  odd.child.stdin.write(INITIALIZE);
  await odd.answer(1);
  odd.child.stdout.destroy();
  odd.child.stdin.write(line(2, 'tools/list', {}));
  assert.deepEqual(await Promise.all([away.ended, odd.ended]), [0, 0]);
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
