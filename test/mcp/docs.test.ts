// docs/mcp.md: every configuration in it is parsed, and those that start the server are started with this test's paths.

import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { parse } from 'smol-toml';
import { mcp } from '../../src/cli/commands/mcp.ts';
import { COMMAND_TABLE, parseAllowList } from '../../src/mcp/allowlist.ts';
import { parseListenAddress } from '../../src/mcp/http.ts';
import { COMMAND, COMPILED, newHome } from '../kit/command.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startTestService } from '../kit/service.ts';
import { connect, startStage } from './fixture.ts';

interface Entry {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly bearer_token_env_var?: string;
}

const page = readFileSync(join(import.meta.dirname, '../../docs/mcp.md'), 'utf8');
const blocks = [...page.matchAll(/^```(json|toml)\n([\s\S]*?)^```$/gm)].map(([, kind, text = '']) => ({ kind, text }));
const documents = blocks.map(({ kind, text }) => ({ text, read: kind === 'json' ? JSON.parse(text) : parse(text) }));
const entries = documents.flatMap(({ read }): Entry[] =>
  ['mcpServers', 'servers', 'context_servers', 'mcp_servers'].flatMap((name) => Object.values(read[name] ?? {})),
);

test('the page has configurations of both kinds, in the forms of all clients', () => {
  assert.equal(entries.filter(({ command }) => command !== undefined).length, 4);
  assert.equal(entries.filter(({ url }) => url !== undefined).length, 3);
});

for (const [index, { command, args = [], env = {} }] of entries.entries()) {
  if (command === undefined) continue;
  test(`the configuration starts the server that it describes: ${index + 1}`, async (t) => {
    assert.equal(command, 'leasehold');
    const service = await startTestService(t);
    await service.agent('coder', { 'dev/*': ['retrieve', 'list'] });
    const folder = temporaryDirectory(t);
    const [program, commands, files] = ['program', 'commands.toml', 'files'].map((name) => join(folder, name)) as [
      string,
      string,
      string,
    ];
    mkdirSync(files, { mode: 0o700 });
    writeFileSync(program, '#!/bin/sh\n');
    chmodSync(program, 0o700);
    const fields = { description: 'A', program, directory: folder };
    const lines = Object.entries(fields).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
    writeFileSync(commands, ['[commands.a]', ...lines, 'credentials = { A = "dev/a" }', ''].join('\n'), {
      mode: 0o600,
    });
    const real = (text: string): string =>
      text
        .replace('http://127.0.0.1:7700', service.address)
        .replace('/etc/leasehold/coder.pem', join(service.dataDir, 'agents/coder/private_key.pem'))
        .replace('/etc/leasehold/commands.toml', commands)
        .replace('/run/user/1000/leasehold', files);
    const [node, ...first] = COMMAND;
    const home = newHome(t).path;
    const transport = new StdioClientTransport({
      command: node,
      args: [...first, ...args.map(real)],
      env: {
        HOME: home,
        ...COMPILED,
        ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, real(value)])),
      },
      cwd: home,
      stderr: 'ignore',
    });
    const client = new Client({ name: 'test', version: '0' });
    await client.connect(transport);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    assert.equal(names.includes('write_credential_to_file'), args.includes('--files-dir'));
    assert.equal(names.includes('run_with_credential'), args.includes('--commands'));
    await client.close();
  });
}

test('the configurations over HTTP name the address of the server, and contain no token', () => {
  for (const { url, headers, bearer_token_env_var: variable } of entries) {
    if (url === undefined) continue;
    const { host, pathname } = new URL(url);
    assert.deepEqual(parseListenAddress(host), { host: '127.0.0.1', port: 7800 });
    assert.equal(pathname, '/mcp');
    if (variable === undefined) assert.match(headers?.['Authorization'] ?? '', /^Bearer \$\{[\w:]+\}$/);
    else assert.equal(variable, 'LEASEHOLD_MCP_TOKEN');
  }
});

test('the list of commands on the page is valid, and every field is described', () => {
  const lists = documents.filter(({ read }) => 'commands' in read);
  assert.equal(lists.length, 1);
  const names = parseAllowList(lists[0]?.text ?? '').map(({ name }) => name);
  assert.deepEqual(names, ['migrate', 'call']);
  const rows = [...page.matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, name]) => name);
  for (const field of Object.keys(COMMAND_TABLE.properties)) assert.equal(rows.includes(field), true, field);
});

test('every argument and every field of http_request is on the page', async (t) => {
  const { mcp: opened } = await startStage(t);
  const { client } = await connect(t, opened, 'stdio');
  const tool = (await client.listTools()).tools.find(({ name }) => name === 'http_request');
  const names = [tool?.inputSchema, tool?.outputSchema].flatMap((schema) => Object.keys(schema?.properties ?? {}));
  assert.equal(names.length > 10, true);
  for (const name of names) assert.equal(page.includes(`\`${name}\``), true, name);
});

test('every tool and every flag is on the page', async (t) => {
  const { mcp: opened } = await startStage(t, { allowsValues: true });
  for (const name of opened.toolNames) assert.equal(page.includes(`\`${name}\``), true, name);
  for (const name of Object.keys(mcp.flags ?? {})) assert.equal(page.includes(`--${name}`), true, name);
});
