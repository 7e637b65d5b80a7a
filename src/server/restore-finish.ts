/**
 * The last steps of a restore, on the committed copy: the restore is recorded as an audit entry, the chain is read
 * again, and the copy is published with the keys of agents and the rollback marker.
 */

import { rmSync } from 'node:fs';
import type { EncryptedAgentKey } from '../backup/records.ts';
import type { AgentId, AgentName } from '../core/names.ts';
import { publicKeyOfPem } from '../crypto/signatures.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { type Clock, DatabaseClock, startClock } from '../ledger/clock.ts';
import { Ledger } from '../ledger/ledger.ts';
import { NEVER_ABORTED } from '../ledger/single-flight.ts';
import { DenialBudget } from '../ledger/token-buckets.ts';
import { readVaultState, type VaultState } from '../ledger/vault-state.ts';
import { StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import { serviceEvent } from '../vault/audit/lifecycle.ts';
import { type VerificationResult, Verifier } from '../vault/audit/verification/verifier.ts';
import { decryptAgentKey } from '../vault/backup/agent-keys.ts';
import { newSigningKey } from '../vault/keys/keys.ts';
import { checkpointFilesOf } from './checkpoint-files.ts';
import { FsAgentKeyStore } from './fs-agent-key-store.ts';
import type { RestoredAgent } from './restore-checks.ts';
import type { RestoreRequest } from './restore-request.ts';
import { describeLocation, type RestoreTarget } from './restore-target.ts';
import { compareWithCheckpoints, compareWithMarker, type RollbackFinding } from './rollback-detection.ts';
import { RollbackMarker } from './rollback-marker.ts';

interface Restored {
  readonly target: RestoreTarget;
  readonly copy: Store;
  readonly keys: VaultKeys;
  readonly request: RestoreRequest;
  readonly agents: ReadonlyMap<AgentId, RestoredAgent>;
  readonly agentKeys: readonly EncryptedAgentKey[];
  readonly reason: string;
}

export interface FinishedRestore {
  readonly verification: VerificationResult;
  readonly agentKeysWritten: number;
  /** Why startup will reject the restored state, because this directory has seen a later one; or null. */
  readonly rollback: string | null;
}

/** @throws StartupError, StoreError */
export async function finishRestore(restored: Restored): Promise<FinishedRestore> {
  const { target, copy, keys, request } = restored;
  const memory = await readVaultState(copy, keys);
  const clock = await openClock(copy, memory.lastEntryAt);
  await recordRestore(restored, memory, clock);
  const verification = await new Verifier({ store: copy, keys, clock }).verify(NEVER_ABORTED);
  if (!verification.isValid && !request.acceptsDamage) {
    const where = `entry ${verification.breakAtEntry}: ${verification.reason}`;
    throw new StartupError(
      `The copy in ${describeLocation(request.to)} differs from the backup (${where}). Do not use it.`,
    );
  }
  const loss = await findRestoredRollback(restored);
  // ORDER: the files last. Startup commits staged keys, and a vault without its rollback marker does not start.
  await using unpublished = new AsyncDisposableStack();
  const agentKeys = await stageAgentKeys(restored, unpublished);
  await markCopy(restored, unpublished);
  await target.publish();
  unpublished.move();
  await agentKeys.commit();
  return {
    verification,
    agentKeysWritten: agentKeys.count,
    rollback: loss?.what ?? null,
  };
}

async function openClock(copy: Store, lastEntryAt: number): Promise<Clock> {
  const shared = await copy.readTime();
  return shared === null ? startClock(lastEntryAt) : new DatabaseClock(shared, lastEntryAt);
}

/**
 * Records the restore through the ledger, like every entry, so that all the data that it keeps with the chain is right.
 */
async function recordRestore({ copy, keys, reason }: Restored, memory: VaultState, clock: Clock): Promise<void> {
  let failure: unknown = null;
  const ledger = new Ledger({
    store: copy,
    keys,
    clock,
    memory,
    settings: { adminMayRetrieve: false, versionsKept: 1 },
    denials: new DenialBudget(0),
    onRemoved: () => undefined,
    onCommitted: () => undefined,
    onStorageFailure: () => undefined,
    onFailedBatch: (error) => {
      failure ??= error;
    },
  });
  try {
    // WHY another signing key: the original continues from the same entry, and no key may sign two roots for one size.
    await ledger.submit(serviceEvent('service.restore', reason, [newSigningKey()]));
  } catch (error) {
    throw failure ?? error;
  } finally {
    await ledger.close();
  }
}

/** The entries that this directory has seen and that the restored log lacks; null if there are none. */
async function findRestoredRollback({ copy, keys, request }: Restored): Promise<RollbackFinding | null> {
  const { dataDir, configuration } = request;
  if (dataDir === null) return null;
  const marker = new RollbackMarker(dataDirPaths(dataDir).rollbackMarkerFile, keys);
  const loss = marker.read() === null ? null : await compareWithMarker(marker, copy, keys);
  return loss ?? compareWithCheckpoints(checkpointFilesOf(configuration), copy, keys);
}

/** Writes the marker. An existing one stays, because it may have seen entries that the restored log lacks. */
async function markCopy({ copy, keys, request }: Restored, unpublished: AsyncDisposableStack): Promise<void> {
  if (request.to.kind === 'database') return;
  const { rollbackMarkerFile } = dataDirPaths(request.to.dir);
  const marker = new RollbackMarker(rollbackMarkerFile, keys);
  if (marker.read() !== null) return;
  unpublished.defer(() => rmSync(rollbackMarkerFile, { force: true }));
  const { last } = await copy.run(readHead());
  if (last !== null) await marker.keep(last);
  await marker.close();
}

/**
 * Stages the agents' keys. Skips a key that does not decrypt, or is not the current one of its agent, which could not
 * log in with it.
 */
async function stageAgentKeys({ keys, request, agents, agentKeys }: Restored, unpublished: AsyncDisposableStack) {
  const staged = new Map<AgentId, AgentName>();
  const store = request.dataDir === null ? null : new FsAgentKeyStore(dataDirPaths(request.dataDir).agentsDir);
  for (const { id, sealed } of store === null ? [] : agentKeys) {
    const agentId = id as AgentId;
    const agent = agents.get(agentId);
    const pem = agent === undefined ? null : (decryptAgentKey(keys, agentId, sealed)?.reveal() ?? null);
    if (store === null || agent === undefined || pem === null || publicKeyOfPem(pem) !== agent.publicKey) continue;
    unpublished.defer(() => store.abort(agentId));
    // An interrupted restore may have left it.
    await store.abort(agentId);
    await store.stage(agentId, pem);
    staged.set(agentId, agent.name);
  }
  return {
    count: staged.size,
    async commit() {
      for (const [id, name] of staged) await store?.commit(id, name);
    },
  };
}
