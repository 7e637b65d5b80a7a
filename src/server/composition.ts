/** The composition root: builds the server from its parts, and starts and stops it. */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { createSecureContext } from 'node:tls';
import type { ServiceStatus } from '../api/types.ts';
import { requestIds } from '../crypto/primitives.ts';
import { hashToken } from '../crypto/tokens.ts';
import { CALLER_TIMEOUTS, type CallerTimeouts } from '../http/connections.ts';
import { createServer } from '../http/http-server.ts';
import { RequestMeasures } from '../http/request-measures.ts';
import { StartupError } from '../platform/errors.ts';
import { readVersion } from '../platform/installation.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { isOpenToOthers } from '../platform/private-files.ts';
import type { StoreError } from '../store/errors.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import { APPROVAL_HOLD_MS } from '../vault/approvals/approval-holds.ts';
import { isAttended } from '../vault/keys/keyset.ts';
import { connectionName } from '../vault/overview/nodes.ts';
import type { Configuration } from './configuration.ts';
import { isLoopback, withConnectionName } from './flag-values.ts';
import { listen } from './listen.ts';
import { logFailure, type ServerLog, withoutRepetitions } from './log.ts';
import { metricsPage } from './metrics/metrics-page.ts';
import type { Locked } from './open-keys.ts';
import { openVault, prepareDataDir } from './open-vault.ts';
import { RunningVault } from './running-vault.ts';
import { type AdminToken, chooseAdminToken, ServerFiles } from './server-files.ts';
import { type OpenVault, VaultGate } from './vault-gate.ts';

/** Interval between equal log lines, because a failing storage causes the same line with each request. */
const SAME_LINE_MS = 1000;

export interface RunningServer {
  /** The URL in the form that clients accept, such as `http://127.0.0.1:7700`. */
  readonly address: string;
  readonly adminToken: AdminToken;
  readonly warnings: readonly string[];
  status(): ServiceStatus;
  /** Finishes requests in flight within 10 s, records the shutdown, and closes. */
  stop(): Promise<void>;
}

export interface ServerTimeouts extends CallerTimeouts {
  readonly stopMs: number;
  readonly approvalHoldMs: number;
}

// SOURCE: docs/decisions.md, "The process".
export const SERVER_TIMEOUTS: ServerTimeouts = {
  ...CALLER_TIMEOUTS,
  stopMs: 10_000,
  approvalHoldMs: APPROVAL_HOLD_MS,
};

/**
 * Starts the server. `onStorageFailure` is called when the process must end because the storage failed; tests replace
 * `syncFile`. @throws StartupError, UsageError, StoreError
 */
export async function startServer(
  configuration: Configuration,
  log: ServerLog,
  onStorageFailure: (line: string) => void,
  syncFile?: SyncFile,
  timeouts: ServerTimeouts = SERVER_TIMEOUTS,
): Promise<RunningServer> {
  let phase: 'starting' | 'running' | 'stopping' = 'starting';
  const warnings: string[] = [];
  const warn = (line: string): void => void (phase === 'starting' ? warnings.push(line) : log.error(line));
  const stopOnStorageFailure = (failure: StoreError): void =>
    onStorageFailure(`The storage failed (${failure.message}); stopping, so that no write is lost silently.`);
  await using resources = new AsyncDisposableStack();
  prepareDataDir(configuration, resources);
  if (isOpenToOthers(configuration.dataDir))
    warn(`Other users may read the keys in ${configuration.dataDir}, as --accept-open-modes accepts.`);
  const files = new ServerFiles(configuration.dataDir);
  let listening: string | null = null;
  let ownPorts: readonly number[] = [];
  const logOften = withoutRepetitions(log.error, SAME_LINE_MS);
  let adminToken: AdminToken | null = null;
  const chooseToken = (): AdminToken => {
    const { tokenFile } = dataDirPaths(configuration.dataDir);
    adminToken ??= chooseAdminToken(configuration.adminTokenFile, tokenFile, warn);
    return adminToken;
  };
  const requests = new RequestMeasures();
  const node = {
    self: { name: `${hostname()}:${process.pid}`, version: readVersion(), startedAt: Date.now() },
    status: () => status(),
  };
  const open: OpenVault = async (given, acceptRollback) => {
    await using own = new AsyncDisposableStack();
    const database = withConnectionName(configuration.database, connectionName(node.self));
    const opened = await openVault({ ...configuration, database, acceptRollback }, warn, own, given, syncFile);
    if ('slots' in opened) return opened;
    for (const line of opened.memory.warnings) warn(line);
    const adminTokenHash = hashToken(chooseToken().token.reveal());
    const kept = own.move();
    try {
      return new RunningVault({
        configuration,
        opened,
        resources: kept,
        adminTokenHash,
        log,
        logOften,
        onStorageFailure: stopOnStorageFailure,
        warn,
        approvalHoldMs: timeouts.approvalHoldMs,
        node,
        ownPorts: () => ownPorts,
        consoleUrl: () => configuration.consoleUrl ?? (listening?.startsWith('http') === true ? listening : null),
      });
    } catch (error) {
      await kept.disposeAsync();
      throw error;
    }
  };
  const gate = new VaultGate(open, configuration.acceptRollback, (line) => log.error(line));
  // Only during startup: afterwards the server closes the vault itself.
  resources.defer(() => gate.running?.close(false));
  const locked = await gate.start();
  if (locked !== null) warnings.push(lockedWarning(locked));
  const { vault } = gate;
  const token = chooseToken();
  const status = (): ServiceStatus => {
    if (phase !== 'running') return phase;
    const { running } = gate;
    if (running === null) return 'locked';
    if (running.loss !== null) return 'rolled_back';
    return running.vault.ledger.state === 'ok' ? 'ok' : 'failing';
  };
  const server = createServer({
    vault,
    status,
    log,
    newRequestId: requestIds(),
    checksHost: isLoopback(configuration.listen),
    publicNames: new Set(configuration.publicNames),
    trustedProxies: configuration.trustedProxies,
    tls: readTls(configuration.tls),
    prove: (nonce) => files.prove(nonce),
    metrics: metricsPage(configuration, { requests, status }, () => gate.running?.sources ?? null, warn),
    measures: requests,
    timeouts,
  });
  const address = await listen(server, configuration.listen, configuration.tls !== null);
  listening = address;
  if (address.startsWith('http')) ownPorts = [portOf(address)];
  try {
    files.publish(address, token, configuration.adminTokenFile);
    await gate.running?.start('service.start');
  } catch (error) {
    files.remove();
    await server.close();
    throw error;
  }
  phase = 'running';
  const kept = resources.move();
  return {
    address,
    adminToken: token,
    warnings,
    status,
    async stop() {
      phase = 'stopping';
      try {
        files.remove();
      } catch (error) {
        // WHY only logged: commands check the lock and demand the proof before they trust the files.
        logFailure(log.error, 'the files for commands on this machine could not be removed', error);
      }
      const deadline = setTimeout(() => {
        // WHY: the HTTP server no longer tracks the connections of WebSockets.
        void gate.running?.endUses();
        server.server.closeAllConnections();
      }, timeouts.stopMs);
      // A keep-alive connection becomes idle only after its last response.
      const closeIdle = setInterval(() => server.server.closeIdleConnections(), 50);
      // ORDER: the HTTP server first, so that no request reaches a server that is shutting down.
      const serverClosed = server.close();
      await Promise.all([serverClosed, gate.stop().then(() => gate.running?.quiesce())]);
      clearInterval(closeIdle);
      clearTimeout(deadline);
      try {
        await gate.running?.close(true);
      } catch (error) {
        logFailure(log.error, 'the shutdown could not be recorded', error);
        throw error;
      } finally {
        await kept.disposeAsync();
      }
    },
  };
}

function portOf(address: string): number {
  const { port, protocol } = new URL(address);
  return Number(port || (protocol === 'https:' ? 443 : 80));
}

function lockedWarning({ slots, problems }: Locked): string {
  const attended = slots.filter(({ kind }) => isAttended(kind));
  const names = attended.map(({ name }) => name).join(', ');
  return ['The vault is locked.', ...problems, `Run leasehold unlock; these slots open it: ${names}.`].join(' ');
}

function readTls(files: Configuration['tls']) {
  if (files === null) return null;
  try {
    const tls = {
      cert: readFileSync(files.certFile),
      key: readFileSync(files.keyFile),
      minVersion: 'TLSv1.2' as const,
    };
    createSecureContext(tls);
    return tls;
  } catch (error) {
    throw new StartupError(
      `The TLS files cannot be used: ${error instanceof Error ? error.message : 'unknown error'}.`,
    );
  }
}
