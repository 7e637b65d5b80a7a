// `leasehold mcp` as a process over standard input and output, with a real service, scripts of the operator's, and the SDK's own client.

import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { COMMAND, newHome } from '../kit/command.ts';
import { type Scope, temporaryFolder } from '../kit/folder.ts';
import { startTestService, type TestService } from '../kit/service.ts';
import { type Calls, callsOf, EVERYTHING } from './stage.ts';

export interface Script {
  /** Of /bin/sh. `$FILES` is the directory for files. */
  readonly lines: string;
  /** By variable, a path. */
  readonly credentials?: Readonly<Record<string, string>>;
  /** Further lines of its table. */
  readonly toml?: string;
}

export interface Serving extends Calls {
  readonly service: TestService;
  /** Where the scripts run. */
  readonly folder: string;
  readonly filesDir: string;
  /** Makes a file in the folder, for a script that waits for it. */
  touch(name: string): void;
  /** Until a script has made a file in the folder. */
  made(name: string): Promise<void>;
}

/** The agent `builder` may use what is in `values`, by path, all under `prod/`. */
export async function startServer(
  t: Scope,
  values: Readonly<Record<string, string>>,
  scripts: Readonly<Record<string, Script>>,
): Promise<Serving> {
  const service = await startTestService(t);
  await service.agent('builder', EVERYTHING);
  for (const [path, value] of Object.entries(values)) await service.admin.post('/api/v1/credentials', { path, value });
  const folder = temporaryFolder(t);
  const [filesDir, commands] = [join(folder, 'files'), join(folder, 'commands.toml')];
  mkdirSync(filesDir, { mode: 0o700 });
  const tables = Object.entries(scripts).map(([name, script]) => writeScript(folder, filesDir, name, script));
  const isRunning = tables.length > 0;
  if (isRunning) writeFileSync(commands, tables.join('\n'), { mode: 0o600 });
  const key = join(service.dataDir, 'agents/builder/private_key.pem');
  const who = ['--address', service.address, '--agent', 'builder', '--key-file', key];
  const [command, ...first] = COMMAND;
  const home = newHome(t).path;
  const transport = new StdioClientTransport({
    command,
    args: [...first, 'mcp', ...who, '--files-dir', filesDir, ...(isRunning ? ['--commands', commands] : [])],
    env: { HOME: home },
    cwd: home,
    stderr: 'ignore',
  });
  const client = new Client({ name: 'test', version: '0' });
  await client.connect(transport);
  t.after(() => client.close());
  return {
    ...callsOf(client),
    service,
    folder,
    filesDir,
    touch: (name) => writeFileSync(join(folder, name), ''),
    async made(name) {
      for (let tries = 0; !existsSync(join(folder, name)); tries++) {
        if (tries > 500) throw new Error(`nobody made ${name}`);
        await sleep(20);
      }
    },
  };
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
folder = ${JSON.stringify(folder)}
credentials = { ${pairs.join(', ')} }
${toml}
`;
}
