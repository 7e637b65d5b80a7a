/** The composition root: builds the service from its parts, starts and stops it. */

import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { ServiceStatus } from '../api/types.ts';
import { BrokerClient } from '../broker/broker-client.ts';
import { serviceEvent } from '../core/operations/lifecycle.ts';
import { requestIds } from '../crypto/random.ts';
import { hashToken } from '../crypto/tokens.ts';
import { CALLER_TIMEOUTS, type CallerTimeouts } from '../http/connections.ts';
import { createServer } from '../http/http-server.ts';
import { DenialBudget } from '../ledger/denial-budget.ts';
import { Ledger } from '../ledger/ledger.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { StoreError } from '../store/errors.ts';
import type { SyncFile } from '../store/sqlite/wal-sync.ts';
import { AgentBudgets } from '../vault/agent-budgets.ts';
import { LoginThrottle } from '../vault/login-throttle.ts';
import { RetryingAgentKeys } from '../vault/retrying-agent-keys.ts';
import { UseLimits } from '../vault/use-limits.ts';
import { Uses } from '../vault/uses.ts';
import type { Vault } from '../vault/vault.ts';
import { Verifier } from '../vault/verification/verifier.ts';
import { type AdminToken, chooseAdminToken } from './admin-token.ts';
import { ServiceFiles } from './announcement.ts';
import { type Configuration, isLoopback } from './configuration.ts';
import { listen } from './listen.ts';
import type { ServiceLog } from './log.ts';
import { openVault } from './open-vault.ts';
import { startAnchoring } from './rollback-anchor.ts';
import { startSweeping } from './sweep-timer.ts';

export interface Service {
  /** In the form that clients take, such as `http://127.0.0.1:7700`. */
  readonly address: string;
  readonly adminToken: AdminToken;
  /** For the operator, one line each. */
  readonly warnings: readonly string[];
  /** Finishes requests in flight within 10 s, records the stop, and closes. */
  stop(): Promise<void>;
}

/** Tests shorten these. */
export interface ServiceTimeouts extends CallerTimeouts {
  /** For requests in flight when the service stops. */
  readonly stopMs: number;
}

// SOURCE: docs/decisions.md, "The process".
export const SERVICE_TIMEOUTS: ServiceTimeouts = { ...CALLER_TIMEOUTS, stopMs: 10_000 };
const SAME_LINE_MS = 1000;

/**
 * Starts the service. `onStorageFailure` is called when the process must end because the storage failed; tests replace
 * `syncFile`.
 * @throws StartupError, UsageError, StoreError
 */
export async function startService(
  configuration: Configuration,
  log: ServiceLog,
  onStorageFailure: (line: string) => void,
  syncFile?: SyncFile,
  timeouts: ServiceTimeouts = SERVICE_TIMEOUTS,
): Promise<Service> {
  const warnings: string[] = [];
  const warn = (line: string): void => void warnings.push(line);
  const stopOnStorageFailure = (failure: StoreError): void =>
    onStorageFailure(`The storage failed (${failure.message}); stopping, so that no write is lost silently.`);
  await using resources = new AsyncDisposableStack();
  const { keys, store, memory, clock, keyStore, anchor } = await openVault(configuration, warn, resources, syncFile);
  const files = new ServiceFiles(configuration.dataDir);
  warnings.push(...memory.warnings);
  const adminToken = chooseAdminToken(
    configuration.adminTokenFile,
    dataDirPaths(configuration.dataDir).tokenFile,
    warn,
  );
  let batchError: unknown = null;
  const logOften = rateLimited(log);
  const denials = new DenialBudget(configuration.denialsPerMinute);
  const ledger = new Ledger({
    store,
    keys,
    clock,
    settings: { adminMayRetrieve: configuration.adminMayRetrieve, versionsKept: configuration.versionsKept },
    memory,
    denials,
    onDeregistered: (agents) => {
      for (const { id, name } of agents) void agentKeys.remove(id, name);
    },
    onCommitted: (changes) => uses.committed(changes),
    onStorageFailure: stopOnStorageFailure,
    // The message of a StoreError contains no data of a request.
    onFailedBatch: (error) => {
      batchError = error;
      // The start fails with this error, in one line.
      if (phase === 'starting') return;
      logOften(`a batch could not be committed${error instanceof StoreError ? `: ${error.message}` : ''}`, error);
    },
  });
  const agentKeys = new RetryingAgentKeys({
    keyStore,
    ledger,
    onFailure: (error) => logOften('a key file could not be written, moved or removed; the service retries', error),
    onStorageFailure: stopOnStorageFailure,
  });
  const broker = new BrokerClient();
  resources.defer(() => broker.stop());
  const uses = new Uses(ledger, broker, new UseLimits(ledger, () => clock.now()));
  const vault: Vault = {
    ledger,
    store,
    keys,
    clock,
    agentKeys,
    loginThrottle: new LoginThrottle(),
    budgets: new AgentBudgets(configuration.budgets),
    verifier: new Verifier({ store, keys, clock }),
    uses,
    adminTokenHash: hashToken(adminToken.token.reveal()),
  };
  let phase: 'starting' | 'running' | 'stopping' = 'starting';
  const status = (): ServiceStatus => (phase !== 'running' ? phase : ledger.state === 'ok' ? 'ok' : 'failing');
  const server = createServer({
    vault,
    status,
    log,
    newRequestId: requestIds(),
    hostRule: isLoopback(configuration.listen) ? { names: new Set(configuration.publicNames) } : null,
    trustedProxies: configuration.trustedProxies,
    tls: readTls(configuration.tls),
    prove: (nonce) => files.prove(nonce),
    timeouts,
  });
  const address = await listen(server, configuration.listen, configuration.tls !== null);
  try {
    files.publish(address, adminToken, configuration.adminTokenFile);
    await ledger.submit(serviceEvent('service.start', memory.warnings[0] ?? null));
  } catch (error) {
    files.remove();
    await server.close();
    // WHY: the error that callers get does not contain the cause, which the operator needs.
    throw batchError instanceof StoreError ? batchError : error;
  }
  const watching = startAnchoring(ledger, anchor, store.isMultiWriter, logOften);
  const sweeping = startSweeping(store, clock, log, stopOnStorageFailure);
  phase = 'running';
  const kept = resources.move();
  return {
    address,
    adminToken,
    warnings,
    async stop() {
      phase = 'stopping';
      try {
        files.remove();
      } catch (error) {
        // WHY only logged: commands check the lock and demand the proof before they trust the files.
        log.error('the files for commands on this machine could not be removed', error);
      }
      agentKeys.stop();
      await sweeping.stop();
      const cut = setTimeout(() => {
        // WHY: the server no longer knows the connections of WebSockets.
        void uses.stop();
        server.server.closeAllConnections();
      }, timeouts.stopMs);
      // A keep-alive connection becomes idle only after its last response.
      const closeIdle = setInterval(() => server.server.closeIdleConnections(), 50);
      await server.close();
      clearInterval(closeIdle);
      clearTimeout(cut);
      await uses.stop();
      denials.close();
      try {
        await recordStop(ledger);
        await ledger.idle();
      } catch (error) {
        log.error('the stop could not be recorded', error);
        throw error;
      } finally {
        await watching.stop();
        await kept.disposeAsync();
      }
    },
  };
}

/** Logs a repeated line at most once a second. */
function rateLimited(log: ServiceLog): ServiceLog['error'] {
  let last = { line: '', at: 0 };
  return (line, error) => {
    const now = performance.now();
    if (line === last.line && now - last.at < SAME_LINE_MS) return;
    last = { line, at: now };
    log.error(line, error);
  };
}

/** Retries once: after a failed batch the ledger reloads its state from the store. */
async function recordStop(ledger: Ledger): Promise<void> {
  const record = () => ledger.submit(serviceEvent('service.stop', null));
  await record().catch(record);
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
