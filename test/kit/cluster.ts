/** Several nodes as real processes on one database, with one root key and administrator token. */
import { randomBytes } from 'node:crypto';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Client, createClient } from './client.ts';
import { newDatabase } from './database.ts';
import { type Scope, temporaryDirectory } from './directory.ts';
import { type ServiceProcess, startProcess } from './process.ts';

export interface Node extends ServiceProcess {
  readonly dataDir: string;
  /** Calls as the administrator. */
  readonly admin: Client;
}

export interface Cluster {
  readonly url: string;
  readonly adminToken: string;
  readonly rootKeyFile: string;
  readonly nodes: readonly Node[];
  /** Starts another node, or restarts one on its data directory. */
  start(dataDir?: string, flags?: readonly string[], url?: string): Promise<Node>;
}

interface Choices {
  readonly nodes: number;
  /** Of an existing database; by default a new one. */
  readonly url?: string;
  /** What each node connects to instead, such as a proxy. */
  readonly urlOf?: (node: number) => string;
}

function writePrivate(file: string, text: string): string {
  writeFileSync(file, `${text}\n`);
  chmodSync(file, 0o600);
  return file;
}

export async function startCluster(scope: Scope, { nodes: count, url: given, urlOf }: Choices): Promise<Cluster> {
  const url = given ?? (await newDatabase(scope));
  const directory = temporaryDirectory(scope);
  const adminToken = `test_${randomBytes(24).toString('hex')}`;
  const tokenFile = writePrivate(join(directory, 'admin.token'), adminToken);
  const rootKeyFile = join(directory, 'root.key');
  let started = 0;
  const start = async (
    dataDir = join(directory, `node-${++started}`),
    flags: readonly string[] = [],
    itsUrl = url,
  ): Promise<Node> => {
    const own = writePrivate(`${dataDir}.url`, itsUrl);
    const shared = ['--root-key-file', rootKeyFile, '--admin-token-file', tokenFile, '--database-file', own];
    const service = await startProcess(scope, dataDir, [...shared, '--log-level', 'error', ...flags]);
    return { ...service, dataDir, admin: createClient(service.address, adminToken) };
  };
  const nodes: Node[] = [];
  // ORDER: sequentially; the first node creates the vault and its root key.
  for (let node = 0; node < count; node++) nodes.push(await start(undefined, [], urlOf?.(node)));
  return { url, adminToken, rootKeyFile, nodes, start };
}
