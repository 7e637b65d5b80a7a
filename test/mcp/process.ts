// The MCP server with a real service, scripts of the operator, and the SDK's client: in this process, or as the process
// `leasehold mcp` over standard input and output.

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { fileSigner, Leasehold } from '../../src/client/leasehold.ts';
import { readAllowList } from '../../src/mcp/allowlist.ts';
import { openMcp } from '../../src/mcp/server.ts';
import { COMMAND, COMPILED, newHome } from '../kit/command.ts';
import { type Scope, temporaryDirectory } from '../kit/directory.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { type Calls, callsOf, connect, EVERYTHING, LEAST } from './fixture.ts';

export interface Script {
  /** Of /bin/sh. `$FILES` is the directory for files. */
  readonly lines: string;
  /** By variable, a path. */
  readonly credentials?: Readonly<Record<string, string>>;
  /** Further lines of its table. */
  readonly toml?: string;
}

export interface Setting {
  readonly service: TestService;
  /** Words behind the command. */
  readonly words: readonly string[];
  /** The file of the agent's key. */
  readonly key: string;
  /** The file of the allowed commands, if there are any. */
  readonly commands: string | null;
  readonly home: string;
  /** Where the scripts run. */
  readonly folder: string;
  readonly filesDir: string;
  /** Creates a file in the directory, for a script that waits for it. */
  touch(name: string): void;
  /** Waits until a script has created a file in the directory. */
  made(name: string): Promise<void>;
  /** Of the agent's leases. */
  statuses(): Promise<string[]>;
}

export interface Serving extends Calls, Setting {
  /** Resolves when the server has ended. */
  close(): Promise<unknown>;
}

/** The agent `builder` may use the credentials in `values`, by path, all under `prod/`. */
export async function prepare(
  t: Scope,
  values: Readonly<Record<string, string>>,
  scripts: Readonly<Record<string, Script>>,
): Promise<Setting> {
  const service = await startTestService(t);
  await service.agent('builder', EVERYTHING);
  for (const [path, value] of Object.entries(values)) await service.admin.post('/api/v1/credentials', { path, value });
  const folder = temporaryDirectory(t);
  const [filesDir, commands] = [join(folder, 'files'), join(folder, 'commands.toml')];
  mkdirSync(filesDir, { mode: 0o700 });
  const tables = Object.entries(scripts).map(([name, script]) => writeScript(folder, filesDir, name, script));
  const isRunning = tables.length > 0;
  if (isRunning) writeFileSync(commands, tables.join('\n'), { mode: 0o600 });
  const key = join(service.dataDir, 'agents/builder/private_key.pem');
  const who = ['--address', service.address, '--agent', 'builder', '--key-file', key];
  return {
    key,
    commands: isRunning ? commands : null,
    words: ['mcp', ...who, '--files-dir', filesDir, ...(isRunning ? ['--commands', commands] : [])],
    home: newHome(t).path,
    service,
    folder,
    filesDir,
    touch: (name) => writeFileSync(join(folder, name), ''),
    async made(name) {
      await until(() => existsSync(join(folder, name)));
    },
    async statuses() {
      const { body } = await service.admin.get('/api/v1/leases?agent=builder');
      return body.data.map(({ status }: { status: string }) => status);
    },
  };
}

/** The server in this process. */
export async function startServer(
  t: Scope,
  values: Readonly<Record<string, string>>,
  scripts: Readonly<Record<string, Script>>,
): Promise<Serving> {
  const setting = await prepare(t, values, scripts);
  const { service, key, commands, filesDir } = setting;
  const mcp = await openMcp({
    ...LEAST,
    client: new Leasehold({ address: service.address, agent: { name: 'builder', sign: fileSigner(key) } }),
    filesDir,
    commands: commands === null ? [] : await readAllowList(commands),
  });
  t.after(() => mcp.close());
  return { ...setting, ...(await connect(t, mcp, 'stdio')), close: () => mcp.close() };
}

/** The server as a process. `nodeFlags` precede all other arguments. */
export async function startServerProcess(
  t: Scope,
  values: Readonly<Record<string, string>>,
  scripts: Readonly<Record<string, Script>>,
  nodeFlags: readonly string[] = [],
): Promise<Serving> {
  const setting = await prepare(t, values, scripts);
  const { words, home } = setting;
  const [command, ...first] = COMMAND;
  const args = [...nodeFlags, ...first, ...words];
  const env = { HOME: home, ...COMPILED };
  const transport = new StdioClientTransport({ command, args, env, cwd: home, stderr: 'ignore' });
  const client = new Client({ name: 'test', version: '0' });
  await client.connect(transport);
  t.after(() => client.close());
  return { ...setting, ...callsOf(client), close: () => closeClient(client) };
}

/** After that time, twice, the SDK's client kills a server that has not ended. */
const SDK_LIMIT_MS = 2000;

/** Closes the client, which gives the server as long as a busy machine needs. */
export async function closeClient(client: Client): Promise<void> {
  const { setTimeout: wait } = globalThis;
  let isPatient = false;
  const patient = mock.method(globalThis, 'setTimeout', (work: () => void, milliseconds?: number) => {
    isPatient ||= milliseconds === SDK_LIMIT_MS;
    return wait(work, milliseconds === SDK_LIMIT_MS ? 120_000 : milliseconds);
  });
  try {
    await client.close();
    assert.ok(isPatient, 'the SDK has another limit');
  } finally {
    patient.mock.restore();
  }
}

export interface Started {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  readonly ended: Promise<number | NodeJS.Signals | null>;
}

/** The process without a client. */
export function start(t: Scope, words: readonly string[], home: string): Started {
  const [program, ...first] = COMMAND;
  const child = spawn(program, [...first, ...words], { env: { HOME: home, ...COMPILED }, cwd: home, stdio: 'pipe' });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += chunk));
  child.stderr.on('data', (chunk) => (stderr += chunk));
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.on('close', (code, signal) => resolve(code ?? signal)),
  );
  t.after(() => child.kill('SIGKILL'));
  return { child, stdout: () => stdout, stderr: () => stderr, ended };
}

/** A request as a line. */
export const ask = (id: number, method: string, params: object): string =>
  `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`;
export const INITIALIZE = ask(1, 'initialize', {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'test', version: '0' },
});

export async function until(claim: () => boolean): Promise<void> {
  for (let tries = 0; !claim(); tries++) {
    if (tries > 6000) throw new Error('it did not happen in time');
    await sleep(20);
  }
}

/** Shell that waits until the test has made the file. */
export const waitFor = (name: string): string => `while [ ! -e ${name} ]; do sleep 0.05; done`;

function writeScript(folder: string, filesDir: string, name: string, script: Script): string {
  const { lines, credentials = {}, toml = '' } = script;
  const program = join(folder, `${name}.sh`);
  writeFileSync(program, `#!/bin/sh\nFILES='${filesDir}'\n${lines}\n`);
  chmodSync(program, 0o700);
  const pairs = Object.entries(credentials).map(([variable, path]) => `${variable} = "${path}"`);
  return `[commands.${name}]
description = "Works"
program = ${JSON.stringify(program)}
directory = ${JSON.stringify(folder)}
credentials = { ${pairs.join(', ')} }
${toml}
`;
}
