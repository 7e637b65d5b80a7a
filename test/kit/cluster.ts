/** Several nodes on one database, with one root key and administrator token: as real processes, or in this process. */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ServerTimeouts } from '../../src/server/composition.ts';
import { type Client, createClient } from './client.ts';
import { newDatabase } from './database.ts';
import { closeBeforeRemoval, type Scope, temporaryDirectory } from './directory.ts';
import { type ServiceProcess, startProcess } from './process.ts';
import { startTestService, type TestService } from './service.ts';

export interface Node extends ServiceProcess {
  readonly dataDir: string;
  /** Calls as the administrator. */
  readonly admin: Client;
}

interface Choices {
  readonly nodes: number;
  /** The URL of an existing database; by default a new one. */
  readonly url?: string;
  /** The URL to which each node connects instead, such as that of a proxy. */
  readonly urlOf?: (node: number) => string;
  /** Time limits of nodes in this process. */
  readonly timeouts?: Partial<ServerTimeouts>;
}

function writePrivate(file: string, text: string): string {
  writeFileSync(file, `${text}\n`);
  chmodSync(file, 0o600);
  return file;
}

/** `start` starts another node, or restarts one on its data directory. */
interface Started<T> {
  readonly url: string;
  readonly adminToken: string;
  readonly rootKeyFile: string;
  readonly nodes: readonly T[];
  start(dataDir?: string, flags?: readonly string[], url?: string): Promise<T>;
}

export type Cluster = Started<Node>;

type StartNode<T> = (dataDir: string, flags: readonly string[], adminToken: string) => Promise<T>;

export function startCluster(scope: Scope, choices: Choices): Promise<Cluster> {
  return startAll<Node>(scope, choices, async (dataDir, flags, adminToken) => {
    const service = await startProcess(scope, dataDir, ['--log-level', 'error', ...flags]);
    return { ...service, dataDir, admin: createClient(service.address, adminToken) };
  });
}

/** Nodes in this process, for tests that neither kill one nor read its output: each costs a tenth of a process. */
export async function startNodes(scope: Scope, choices: Choices): Promise<Started<TestService>> {
  const url = choices.url ?? (await newDatabase(scope));
  return startAll(scope, { ...choices, url }, async (dataDir, flags) => {
    const service = await startTestService(scope, flags, dataDir, undefined, choices.timeouts);
    closeBeforeRemoval(url, service.stop);
    return service;
  });
}

async function startAll<T>(
  scope: Scope,
  { nodes: count, url: given, urlOf }: Choices,
  startNode: StartNode<T>,
): Promise<Started<T>> {
  const url = given ?? (await newDatabase(scope));
  const directory = temporaryDirectory(scope);
  const adminToken = `test_${randomBytes(24).toString('hex')}`;
  const tokenFile = writePrivate(join(directory, 'admin.token'), adminToken);
  const rootKeyFile = join(directory, 'root.key');
  let started = 0;
  const start = (
    dataDir = join(directory, `node-${++started}`),
    flags: readonly string[] = [],
    itsUrl = url,
  ): Promise<T> => {
    const own = writePrivate(`${dataDir}.url`, itsUrl);
    const shared = ['--root-key-file', rootKeyFile, '--admin-token-file', tokenFile, '--database-file', own];
    return startNode(dataDir, [...shared, ...flags], adminToken);
  };
  const nodes: T[] = [];
  // ORDER: sequentially; the first node creates the vault and its root key.
  for (let node = 0; node < count; node++) nodes.push(await start(undefined, [], urlOf?.(node)));
  return { url, adminToken, rootKeyFile, nodes, start };
}
