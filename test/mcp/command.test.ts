// `leasehold mcp` as a process, called by the SDK's client as usual clients call it.

import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { COMMAND, COMPILED, newHome } from '../kit/command.ts';
import { runInProcess } from '../kit/commandline.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { startTestService } from '../kit/service.ts';
import { EVERYTHING, httpTransport, shows, VALUE } from './fixture.ts';
import { ask, closeClient, INITIALIZE, start } from './process.ts';

const PATH = 'prod/db/password';

/** A service with an agent, a directory for files, and a list with one command: `show` prints the value. */
async function begin(t: TestContext) {
  const service = await startTestService(t);
  await service.agent('builder', EVERYTHING);
  await service.admin.post('/api/v1/credentials', { path: PATH, value: VALUE });
  const folder = temporaryDirectory(t);
  const [filesDir, program, commands] = ['files', 'show.sh', 'commands.toml'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(filesDir, { mode: 0o700 });
  writeFileSync(program, '#!/bin/sh\necho "it is $PASSWORD"\n[ -z "$1" ] || { touch begun; sleep 30; }\n', {
    mode: 0o700,
  });
  chmodSync(program, 0o700);
  writeFileSync(
    commands,
    `[commands.show]
description = "Shows what it got"
program = ${JSON.stringify(program)}
directory = ${JSON.stringify(folder)}
credentials = { PASSWORD = "${PATH}" }
extra_arguments = { pattern = "wait" }
`,
    { mode: 0o600 },
  );
  const key = join(service.dataDir, 'agents/builder/private_key.pem');
  const who = ['--address', service.address, '--agent', 'builder', '--key-file', key];
  const words = ['mcp', ...who, '--files-dir', filesDir, '--commands', commands];
  const statuses = async (): Promise<string[]> =>
    (await service.admin.get('/api/v1/leases?agent=builder')).body.data.map(({ status }: { status: string }) => status);
  return { service, folder, filesDir, words, statuses, home: newHome(t) };
}

for (const era of ['auto', 'legacy'] as const) {
  test(`a client (${era}) starts it, uses a credential without seeing it, and leaves nothing behind`, async (t) => {
    const { words, home, filesDir, statuses } = await begin(t);
    const [command, ...first] = COMMAND;
    const transport = new StdioClientTransport({
      command,
      args: [...first, ...words],
      env: { HOME: home.path, ...COMPILED },
      cwd: home.path,
      stderr: 'pipe',
    });
    let said = '';
    transport.stderr?.on('data', (chunk) => (said += chunk));
    const client = new Client({ name: 'test', version: '0' }, { versionNegotiation: { mode: era } });
    await client.connect(transport);
    const ran = await client.callTool({ name: 'run_with_credential', arguments: { command: 'show' } });
    assert.equal((ran.structuredContent as { stdout: string }).stdout, 'it is [secret]\n');
    await client.callTool({ name: 'write_credential_to_file', arguments: { path: PATH, name: 'password' } });
    assert.equal(readFileSync(join(filesDir, 'password'), 'utf8'), VALUE);
    await closeClient(client);
    await until(() => readdirSync(filesDir).length === 0);
    await until(async () => !(await statuses()).includes('active'));
    assert.deepEqual(await statuses(), ['revoked', 'revoked']);
    assert.match(
      said,
      /^leasehold mcp: acts as builder at http:\S+; tools: http_request, list_credentials, .*run_with_credential\n/,
    );
    assert.equal(shows(said), false);
  });
}

test('standard output contains only the protocol, whatever is sent', async (t) => {
  const { words, home, folder } = await begin(t);
  const { child, stdout, stderr, ended } = start(t, words, home.path);
  child.stdin?.write(`no json at all\n{"a":1}\n${INITIALIZE}`);
  const call = { name: 'run_with_credential', arguments: { command: 'show' } };
  child.stdin?.write(ask(2, 'tools/call', call) + ask(3, 'tools/call', { name: 'nothing' }));
  await until(() => stdout().includes('"id":2') && stdout().includes('"id":3'));
  for (const line of stdout().trimEnd().split('\n')) assert.equal(JSON.parse(line).jsonrpc, '2.0');
  assert.equal(shows(stdout() + stderr()), false);
  // The client disconnects while a command runs.
  child.stdin?.write(ask(4, 'tools/call', { ...call, arguments: { command: 'show', extra_arguments: ['wait'] } }));
  await until(() => existsSync(join(folder, 'begun')));
  child.stdin?.end();
  assert.equal(await ended, 0);
});

test('SIGTERM ends the running command, removes the files, revokes the leases, and the exit code is 0', async (t) => {
  const { words, home, folder, filesDir, statuses } = await begin(t);
  const { child, stdout, ended } = start(t, words, home.path);
  child.stdin?.write(INITIALIZE);
  child.stdin?.write(ask(2, 'tools/call', { name: 'write_credential_to_file', arguments: { path: PATH, name: 'a' } }));
  await until(() => stdout().includes('"id":2'));
  const call = { name: 'run_with_credential', arguments: { command: 'show', extra_arguments: ['wait'] } };
  child.stdin?.write(ask(3, 'tools/call', call));
  await until(() => existsSync(join(folder, 'begun')));
  child.kill('SIGTERM');
  assert.equal(await ended, 0);
  assert.deepEqual(readdirSync(filesDir), []);
  assert.deepEqual(await statuses(), ['revoked', 'revoked']);
});

test('over HTTP it prints its address and a token, or reads the token from a file and prints none', async (t) => {
  const { words, home, folder } = await begin(t);
  const made = start(t, [...words, '--http', '127.0.0.1:0'], home.path);
  await until(() => /token: lhm_\S+\n/.test(made.stderr()));
  const [, url = ''] = /listening on (\S+);/.exec(made.stderr()) ?? [];
  const [, token = ''] = /token: (lhm_\S+)\n/.exec(made.stderr()) ?? [];
  const client = new Client({ name: 'test', version: '0' });
  await client.connect(httpTransport(url, token));
  const ran = await client.callTool({ name: 'run_with_credential', arguments: { command: 'show' } });
  assert.equal((ran.structuredContent as { stdout: string }).stdout, 'it is [secret]\n');
  await client.close();
  made.child.kill('SIGINT');
  assert.equal(await made.ended, 0);
  assert.equal(made.stdout(), '');
  const file = join(folder, 'token');
  writeFileSync(file, 'a'.repeat(40), { mode: 0o600 });
  const given = start(t, [...words, '--http', '127.0.0.1:0', '--http-token-file', file], home.path);
  await until(() => given.stderr().includes('listening on'));
  assert.equal(given.stderr().includes('token:'), false);
  assert.equal(given.stderr().includes('aaa'), false);
});

test('an invalid configuration is reported in one line, and the exit code is 1', async (t) => {
  const { words, home, folder, filesDir, service } = await begin(t);
  const assertRejected = (ended: Awaited<ReturnType<typeof home.leasehold>>, says: RegExp): void => {
    assert.deepEqual([ended.code, ended.stdout], [1, ''], ended.stderr);
    assert.match(ended.stderr, says);
  };
  // A server that is not opened handles no signals and exits no process.
  const open = (given: readonly string[]) =>
    runInProcess({
      words: given,
      input: '',
      environment: { HOME: home.path },
      cwd: home.path,
      signal: null,
      onStdout: null,
      onStderr: null,
    });
  const unopened: readonly [words: readonly string[], says: RegExp][] = [
    [[...words, '--http-token-file', 'x'], /--http-token-file requires --http/],
    [words.with(words.indexOf('--commands') + 1, 'none'), /--commands: cannot be read \(ENOENT\)/],
    [words.with(words.indexOf('--files-dir') + 1, join(folder, 'none')), /--files-dir: .*mkdir -m 700/],
    [['mcp', '--data-dir', service.dataDir], /must act as an agent, not as the administrator/],
  ];
  for (const [given, says] of unopened) assertRejected(await open(given), says);
  const opened: readonly [words: readonly string[], says: RegExp][] = [
    [[...words, '--http', '0.0.0.0:1'], /--http: must be localhost/],
    [[...words, '--http', '127.0.0.1:0', '--http-token-file', 'x'], /--http-token-file: \S+ cannot be read \(ENOENT\)/],
  ];
  for (const [given, says] of opened) assertRejected(await home.leasehold(given), says);
  chmodSync(filesDir, 0o755);
  assertRejected(await open(words), /--files-dir: \S+ must be private: chmod 700/);
});
