/** The service: the composition root. Starts, runs and stops; nothing else knows all the parts. */
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { serviceEvent } from '../core/operations/lifecycle.ts';
import { requestIds } from '../crypto/ids.ts';
import { hashToken } from '../crypto/tokens.ts';
import { CALLER_TIMEOUTS, type CallerTimeouts } from '../http/connections.ts';
import { createServer } from '../http/server.ts';
import type { ServiceStatus } from '../http/status.ts';
import { StoreFailure } from '../store/port.ts';
import type { SyncFile } from '../store/sqlite/walsync.ts';
import { Ledger } from '../vault/ledger.ts';
import { FailureLimiter } from '../vault/limiter.ts';
import type { Vault } from '../vault/vault.ts';
import { Verifier } from '../vault/verifier.ts';
import { type AdminToken, chooseAdminToken, placeAdminToken } from './admintoken.ts';
import { type Configuration, isLoopback } from './configuration.ts';
import { StartError, writePrivateFile } from './files.ts';
import { listen } from './listening.ts';
import type { ServiceLog } from './logs.ts';
import { openVault } from './opening.ts';
import { startSweeping } from './sweeping.ts';
import { startWatching } from './watching.ts';

export interface Service {
  /** As a client would write it, such as `http://127.0.0.1:7700`. */
  readonly address: string;
  readonly adminToken: AdminToken;
  /** What an operator should know, a line each. */
  readonly warnings: readonly string[];
  /** Finishes what is in flight within 10 s, records the stop, and closes. */
  stop(): Promise<void>;
}

/** What the service waits for, and how long. Tests shorten it. */
export interface ServiceTimeouts extends CallerTimeouts {
  /** For what is in flight when the service stops. */
  readonly stopMs: number;
}

// SOURCE: decisions, "The product".
export const SERVICE_TIMEOUTS: ServiceTimeouts = { ...CALLER_TIMEOUTS, stopMs: 10_000 };
const SAME_LINE_MS = 1000;

/**
 * Starts the service. `onBroken` is called when the storage failed so that the process must end; `syncFile` is a disk of a
 * test's own.
 * @throws StartError, UsageError, StoreFailure
 */
export async function startService(
  configuration: Configuration,
  log: ServiceLog,
  onBroken: (line: string) => void,
  syncFile?: SyncFile,
  timeouts: ServiceTimeouts = SERVICE_TIMEOUTS,
): Promise<Service> {
  const warnings: string[] = [];
  const warn = (line: string): void => void warnings.push(line);
  const stopBroken = (failure: StoreFailure): void =>
    onBroken(`The storage failed (${failure.message}); stopping, so that nothing is lost silently.`);
  const opened = await openVault(configuration, warn, syncFile);
  const { keys, store, memory, clock, keyDirs, tokenFile, addressFile } = opened;
  try {
    warnings.push(...memory.warnings);
    const adminToken = chooseAdminToken(configuration.adminTokenFile, tokenFile, warn);
    let failedTurn: unknown = null;
    const logOften = limited(log);
    const ledger = new Ledger({
      store,
      keys,
      clock,
      settings: { adminMayRetrieve: configuration.adminMayRetrieve, versionsKept: configuration.versionsKept },
      memory,
      onDeregistered: (agents) => {
        for (const { id, name } of agents) {
          keyDirs
            .remove(id, name)
            .catch((error) => log.error('the key of an agent that is gone could not be removed', error));
        }
      },
      onBroken: stopBroken,
      // A failure of the store is worded by us and SQLite, and holds nothing that was sent.
      onFailedTurn: (error) => {
        failedTurn = error;
        logOften(`a turn could not be committed${error instanceof StoreFailure ? `: ${error.message}` : ''}`, error);
      },
    });
    const vault: Vault = {
      ledger,
      store,
      keys,
      clock,
      keyFiles: keyDirs,
      limiter: new FailureLimiter(),
      verifier: new Verifier({ store, keys, clock }),
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
      timeouts,
    });
    const address = await listen(server, configuration.listen, configuration.tls !== null);
    try {
      placeAdminToken(adminToken, tokenFile, configuration.adminTokenFile);
      // For the commands that are run beside it.
      writePrivateFile(addressFile, `${address}\n`);
      await ledger.submit(serviceEvent('service.start', memory.warnings[0] ?? null));
    } catch (error) {
      await server.close();
      // In the store's own words: what a caller is told in its place says nothing to an operator.
      throw failedTurn instanceof StoreFailure ? failedTurn : error;
    }
    const watching = opened.seenLog === null ? null : startWatching(ledger, opened.seenLog, log);
    const sweeping = startSweeping(store, clock, log, stopBroken);
    phase = 'running';
    return {
      address,
      adminToken,
      warnings,
      async stop() {
        phase = 'stopping';
        await sweeping.stop();
        const cut = setTimeout(() => server.server.closeAllConnections(), timeouts.stopMs);
        // A kept-alive connection falls idle only after its last answer.
        const closeIdle = setInterval(() => server.server.closeIdleConnections(), 50);
        await server.close();
        clearInterval(closeIdle);
        clearTimeout(cut);
        try {
          await recordStop(ledger);
          await ledger.idle();
        } catch (error) {
          log.error('the stop could not be recorded', error);
          throw error;
        } finally {
          watching?.stop();
          await opened.close();
        }
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Logs an error that comes with every turn once a second. */
function limited(log: ServiceLog): ServiceLog['error'] {
  let last = { line: '', at: 0 };
  return (line, error) => {
    const now = performance.now();
    if (line === last.line && now - last.at < SAME_LINE_MS) return;
    last = { line, at: now };
    log.error(line, error);
  };
}

/** A turn that failed is followed by one that has read the store anew. */
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
    throw new StartError(`The TLS files cannot be used: ${error instanceof Error ? error.message : 'unknown error'}.`);
  }
}
