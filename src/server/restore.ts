/**
 * Restores a backup into an empty data directory or database, all or nothing: the file is read and verified completely,
 * and its author confirmed, before anything is created. The restore is an entry of the audit log. Anyone who knows a
 * public recipient and the public key of a key slot can make a complete vault that decrypts and verifies. Only the
 * vault's own signing key tells it from a forged one. SOURCE: docs/backup.md.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { decryptFile } from '../backup/encryption.ts';
import { damaged } from '../backup/errors.ts';
import type { BackupSummary } from '../backup/file.ts';
import { readRecords } from '../backup/record-reader.ts';
import type { EncryptedAgentKey } from '../backup/records.ts';
import { encodeStoredKeys } from '../backup/records.ts';
import type { AgentId, AgentName } from '../core/names.ts';
import { publicKeyOfPem } from '../crypto/signatures.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { DenialBudget } from '../ledger/budgets.ts';
import { type Clock, DatabaseClock, startClock } from '../ledger/clock.ts';
import { Ledger } from '../ledger/ledger.ts';
import { NEVER_ABORTED } from '../ledger/single-flight.ts';
import { readVaultState, type VaultState } from '../ledger/vault-state.ts';
import { StartupError } from '../platform/errors.ts';
import { quoteForShell } from '../platform/installation.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { readHead } from '../store/audit-log.ts';
import type { Store } from '../store/port.ts';
import { TABLES } from '../store/schema.ts';
import type { TransferTarget } from '../store/transfer.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import { serviceEvent } from '../vault/audit/lifecycle.ts';
import { StateChecker } from '../vault/audit/verification/state-scan.ts';
import { type VerificationResult, Verifier } from '../vault/audit/verification/verifier.ts';
import { decryptAgentKey } from '../vault/backup/agent-keys.ts';
import { newSigningKey } from '../vault/keys/keys.ts';
import { checkpointFilesOf } from './checkpoint-files.ts';
import { lockDataDir, openDataDir } from './data-dir.ts';
import { FsAgentKeyStore } from './fs-agent-key-store.ts';
import { type ReadBackup, type RestoredAgent, readBackup, toRows } from './read-backup.ts';
import type { RestoreReporter, RestoreRequest } from './restore-command.ts';
import { describeLocation, openTarget, type RestoreTarget } from './restore-target.ts';
import { compareWithCheckpoints, compareWithMarker, type RollbackFinding } from './rollback-detection.ts';
import { RollbackMarker } from './rollback-marker.ts';

export interface RestoreResult extends FinishedRestore {
  readonly summary: BackupSummary;
  readonly decrypted: number;
  /** The accepted findings: parts that do not verify. */
  readonly findings: readonly string[];
}

/** @throws BackupError, StartupError, StoreError, the signal's reason */
export async function restore(request: RestoreRequest, reporter: RestoreReporter): Promise<RestoreResult> {
  const { file, to } = request;
  await using resources = new AsyncDisposableStack();
  reporter.say(`Reading ${file}.`);
  const read = await readBackup(request, reporter);
  const { summary, keys, metadata, checks } = read;
  assertAccepted(read.findings, request);
  // ORDER: before the first write, because the file may come from an untrusted author.
  await confirmAuthor(read, request, reporter);
  lockDirOfKeys(request, resources);
  // WHY 0: no MAC covers the time in the record. The time of the last verified entry applies.
  const target = await openTarget(to, { ...metadata, highWaterTime: 0 }, resources);
  assertNoAgentKeys(request);
  reporter.say(`Restoring to ${describeLocation(to)}.`);
  const agentKeys = await insertRows(request, read, target.writer, reporter);
  const copy = await target.commit();
  const { header } = summary;
  reporter.say('Verifying the restored state.');
  const findings = [...read.findings, ...(await checkCopy(copy, read, reporter.signal))];
  assertAccepted(findings, request);
  const { created_at, log_end } = header;
  const reason = [`from a backup of ${created_at}, through entry ${log_end?.seq ?? 0}`, ...findings].join('; ');
  const finished = await finishRestore({ target, copy, keys, request, agents: checks.agents, agentKeys, reason });
  return { summary, decrypted: checks.decrypted, findings, ...finished };
}

/** Locks the directory in which agents' keys are restored next to a database. @throws StartupError */
function lockDirOfKeys({ to, dataDir }: RestoreRequest, resources: AsyncDisposableStack): void {
  if (to.kind === 'directory' || dataDir === null) return;
  openDataDir(dataDir);
  resources.adopt(lockDataDir(dataDir), (lock) => lock.release());
}

/** Rejects existing keys. Keys in a hidden directory were left by an interrupted restore. @throws StartupError */
function assertNoAgentKeys({ dataDir }: RestoreRequest): void {
  if (dataDir === null) return;
  const { agentsDir } = dataDirPaths(dataDir);
  if (!existsSync(agentsDir) || readdirSync(agentsDir).every((name) => name.startsWith('.'))) return;
  throw new StartupError(
    `${agentsDir} has private keys of agents, which the restore would replace. Nothing was changed. Move them away, or give another --data-dir.`,
  );
}

function assertAccepted(findings: readonly string[], { acceptsDamage }: RestoreRequest): void {
  if (findings.length === 0 || acceptsDamage) return;
  throw new StartupError(
    `The backup does not verify: ${findings.join('; ')}. Nothing was restored. Use another backup, or add --accept-damage to restore it as it is.`,
  );
}

/** Resolves to the keys of agents. @throws BackupError, StoreError, the signal's reason */
async function insertRows(
  { file, opener }: RestoreRequest,
  { summary: { header, totals }, digest }: ReadBackup,
  writer: TransferTarget,
  { signal, progress }: RestoreReporter,
): Promise<readonly EncryptedAgentKey[]> {
  const inserted = new Map<string, number>();
  const agentKeys: EncryptedAgentKey[] = [];
  for await (const record of readRecords(decryptFile(file, opener))) {
    signal.throwIfAborted();
    if (record.kind === 'agentKeys') for (const key of record.keys) agentKeys.push(key);
    if (record.kind === 'end' && record.sha256 !== digest) {
      throw new StartupError(
        `${file} changed while it was restored. Nothing was restored. Run the same command again.`,
      );
    }
    if (record.kind !== 'rows') continue;
    const { table, rows } = toRows(header, record);
    await writer.insert(table, rows);
    const count = (inserted.get(table.name) ?? 0) + rows.length;
    inserted.set(table.name, count);
    progress(table.name, count, totals.rows[table.name] ?? 0);
  }
  for (const table of TABLES) {
    const [found, expected] = [await writer.count(table), totals.rows[table.name] ?? 0];
    // The rows of one table may become part of another.
    if (found === expected) continue;
    throw new StartupError(
      `${table.name} has ${found} rows in the target and ${expected} in the backup. Nothing was restored.`,
    );
  }
  return agentKeys;
}

const formatCount = (n: number, one: string, several = `${one}s`): string =>
  `${n.toLocaleString('en-US')} ${n === 1 ? one : several}`;

async function confirmAuthor(read: ReadBackup, request: RestoreRequest, reporter: RestoreReporter): Promise<void> {
  const newest = read.verifierKeys.at(-1) ?? '';
  const given = request.verifierKeys;
  if (given !== null) {
    // A previous key belongs to the vault too: each restore and each accepted rollback adds one.
    if (read.verifierKeys.some((key) => given.includes(key))) return;
    throw new StartupError(
      `The vault in the backup does not have the key of --verifier-key: another vault, or another author, made the backup. Its verifier key is ${newest}. Nothing was restored.`,
    );
  }
  for (const line of describeBackup(read, newest)) reporter.say(line);
  const answer = await reporter.ask(
    `Restore to ${describeLocation(request.to)}? Type yes only if this is the verifier key that you kept: `,
  );
  if (answer === 'yes') return;
  throw new StartupError(
    answer === null
      ? `Compare the verifier key of the backup with the one that you kept, then run the same command again with --verifier-key ${quoteForShell(newest)}. Nothing was restored.`
      : 'Nothing was restored.',
  );
}

function describeBackup({ summary: { header, totals } }: ReadBackup, verifierKey: string): string[] {
  const { created_at, leasehold, log_end, vault_id, store } = header;
  const rows = (table: string): number => totals.rows[table] ?? 0;
  const contents = [
    formatCount(rows('credentials'), 'credential'),
    formatCount(rows('agents'), 'agent'),
    formatCount(rows('operators'), 'operator'),
    formatCount(rows('policies'), 'policy', 'policies'),
  ];
  return [
    `The backup is of the vault ${vault_id} (${store}), taken at ${created_at} by Leasehold ${leasehold}, through entry ${log_end?.seq ?? 0} of the audit log: ${contents.join(', ')}.`,
    'Anyone who knows your public recipient can make a backup that decrypts. Only this verifier key shows that your vault made it:',
    `  ${verifierKey}`,
  ];
}

const MAX_NAMED = 3;
const MAX_SHOWN_LENGTH = 200;

/** Verifies the copy. Returns one sentence for each problem. @throws BackupError if it cannot be opened, StoreError */
async function checkCopy(
  copy: Store,
  { summary: { header }, keys }: ReadBackup,
  signal: AbortSignal,
): Promise<string[]> {
  const stored = encodeStoredKeys(await copy.run(readStoredKeys()));
  const { keyset, slots }: typeof stored = JSON.parse(JSON.stringify(stored));
  if (!isDeepStrictEqual([keyset, slots], [header.keys.keyset, header.keys.slots])) {
    throw damaged('its keyset or its key slots differ from those in its header');
  }
  const state = new StateChecker({ store: copy, keys, clock: startClock(0) });
  const { problemCount, problems } = await state.check(signal, false);
  if (problemCount === 0) return [];
  const named = problems.slice(0, MAX_NAMED).map(({ subject, problem }) => `${printable(subject)} ${problem}`);
  const others = problemCount > MAX_NAMED ? ', …' : '';
  return [`the state differs from the log in ${problemCount} places (${named.join(', ')}${others})`];
}

/** Escapes the subject: the audit log of a backup from elsewhere may name any subject. */
function printable(subject: string): string {
  return JSON.stringify(subject.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_SHOWN_LENGTH));
}

interface Restored {
  readonly target: RestoreTarget;
  readonly copy: Store;
  readonly keys: VaultKeys;
  readonly request: RestoreRequest;
  readonly agents: ReadonlyMap<AgentId, RestoredAgent>;
  readonly agentKeys: readonly EncryptedAgentKey[];
  readonly reason: string;
}

interface FinishedRestore {
  readonly verification: VerificationResult;
  readonly agentKeysWritten: number;
  /** Why startup will reject the restored state, because this directory has seen a later one; or null. */
  readonly rollback: string | null;
}

/**
 * The last steps, on the committed copy: the restore is recorded as an audit entry, the chain is read again, and the
 * copy is published with the keys of agents and the rollback marker. @throws StartupError, StoreError
 */
async function finishRestore(restored: Restored): Promise<FinishedRestore> {
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
