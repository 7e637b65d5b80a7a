/** The real service in this process: on the store of the run, with a real socket on a free loopback port. */
import { copyFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type RunningServer, SERVER_TIMEOUTS, type ServerTimeouts, startServer } from '../../src/server/composition.ts';
import { type Configuration, readConfiguration } from '../../src/server/configuration.ts';
import { createLog } from '../../src/server/log.ts';
import type { SyncFile } from '../../src/store/sqlite/wal-sync.ts';
import { type Client, createClient, logIn, readAgentKey } from './client.ts';
import { closeBeforeRemoval, type Scope, temporaryDirectory } from './directory.ts';
import { databaseUrlFor, keepDatabase, rejectSyncFile, shareDatabaseOf } from './stores.ts';

export interface TestService {
  readonly address: string;
  readonly dataDir: string;
  /** Calls as the administrator. */
  readonly admin: Client;
  readonly adminToken: string;
  /** The warnings printed at startup, one per line. */
  readonly warnings: readonly string[];
  /** Calls without a token. */
  readonly anonymous: Client;
  /** Calls with any token. */
  as(token: string): Client;
  /** Registers the agent, logs it in, and gives it a policy a grant: `{ 'prod/*': ['retrieve'] }`. */
  agent(name: string, grants?: Readonly<Record<string, readonly string[]>>): Promise<Client & { token: string }>;
  /** Stops it before the scope ends. */
  stop(): Promise<void>;
}

/**
 * Starts the service on a new directory, or on `dataDir`, with the flags of a command line. `syncFile` replaces the
 * sync of SQLite's files; `timeouts` are those that the test shortens; `onStorageFailure` is called where the program
 * would end.
 */
export async function startTestService(
  scope: Scope,
  flags: readonly string[] = [],
  dataDir = join(temporaryDirectory(scope), 'data'),
  syncFile?: SyncFile,
  timeouts: Partial<ServerTimeouts> = {},
  onStorageFailure = (line: string): void => {
    throw new Error(line);
  },
): Promise<TestService> {
  const url = await databaseUrlFor(dataDir, flags);
  if (url !== null) rejectSyncFile(syncFile);
  const configuration = readConfiguration(
    ['--data-dir', dataDir, '--listen', '127.0.0.1:0', '--log-level', 'silent', ...flags],
    url === null ? {} : { LEASEHOLD_DATABASE_URL: url },
  ) as Configuration;
  const service: RunningServer = await startServer(
    configuration,
    createLog(configuration.logLevel),
    onStorageFailure,
    syncFile,
    {
      ...SERVER_TIMEOUTS,
      ...timeouts,
    },
  );
  let stopped: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopped ??= service.stop().finally(forget);
    return stopped;
  };
  const forget = closeBeforeRemoval(dataDir, stop);
  scope.after(stop);
  keepDatabase(scope, dataDir);
  const { address } = service;
  const adminToken = service.adminToken.token.reveal();
  const admin = createClient(address, adminToken);
  return {
    address,
    dataDir,
    admin,
    adminToken,
    warnings: service.warnings,
    anonymous: createClient(address, null),
    as: (token) => createClient(address, token),
    async agent(name, grants = {}) {
      await expectCreated(admin.post('/api/v1/agents', { name }));
      for (const [index, [pattern, actions]] of Object.entries(grants).entries()) {
        const policy = { name: `${name}-${index}`, principal: `agent:${name}`, resources: [pattern], actions };
        await expectCreated(admin.post('/api/v1/policies', policy));
      }
      const token = await logIn(address, name, readAgentKey(dataDir, name));
      return { ...createClient(address, token), token };
    },
    stop,
  };
}

/** Another node of the vault that has not read its log yet: on the same database with the same root key. */
export async function startAnotherNode(scope: Scope, { dataDir }: Pick<TestService, 'dataDir'>): Promise<TestService> {
  const other = join(temporaryDirectory(scope), 'data');
  mkdirSync(other, { mode: 0o700 });
  copyFileSync(join(dataDir, 'root.key'), join(other, 'root.key'));
  shareDatabaseOf(dataDir, other);
  return startTestService(scope, [], other);
}

async function expectCreated(answer: ReturnType<Client['post']>): Promise<void> {
  const { status, text } = await answer;
  if (status !== 201) throw new Error(`expected 201, got ${status}: ${text}`);
}
