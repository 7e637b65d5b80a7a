/**
 * Restores a backup into an empty data directory or database, all or nothing: the file is read and verified completely,
 * and its author confirmed, before anything is created. The restore is an entry of the log.
 * SOURCE: docs/backup.md.
 */
import { existsSync, readdirSync } from 'node:fs';
import { decryptFile } from '../backup/encryption.ts';
import type { BackupSummary } from '../backup/file.ts';
import { readRecords } from '../backup/record-reader.ts';
import type { SealedAgentKey } from '../backup/records.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { TABLES } from '../store/schema.ts';
import type { TransferTarget } from '../store/transfer.ts';
import { lockDataDir, openDataDir } from './data-dir.ts';
import { confirmAuthor } from './restore-author.ts';
import { checkCopy } from './restore-copy-check.ts';
import { type FinishedRestore, finishRestore } from './restore-finish.ts';
import { type ReadBackup, readBackup, toRows } from './restore-reading.ts';
import type { RestoreReporter, RestoreRequest } from './restore-request.ts';
import { describeLocation, openTarget } from './restore-target.ts';

export interface RestoreResult extends FinishedRestore {
  readonly summary: BackupSummary;
  readonly unsealed: number;
  /** What does not verify, if that is accepted. */
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
  // ORDER: before the first write, because the author of the file may be a stranger.
  await confirmAuthor(read, request, reporter);
  lockDirOfKeys(request, resources);
  // WHY 0: no MAC covers the time in the record. That of the last verified entry applies.
  const target = await openTarget(to, { ...metadata, highWaterTime: 0 }, resources);
  assertNoAgentKeys(request);
  reporter.say(`Restoring to ${describeLocation(to)}.`);
  const agentKeys = await insertRows(request, read, target.writer, reporter);
  const copy = await target.commit();
  const { header } = summary;
  reporter.say('Verifying the restored state.');
  const findings = [...read.findings, ...(await checkCopy({ copy, header, keys, signal: reporter.signal }))];
  assertAccepted(findings, request);
  const { created_at, log_end } = header;
  const reason = [`from a backup of ${created_at}, through entry ${log_end?.seq ?? 0}`, ...findings].join('; ');
  const finished = await finishRestore({ target, copy, keys, request, agents: checks.agents, agentKeys, reason });
  return { summary, unsealed: checks.unsealed, findings, ...finished };
}

/** Locks the directory in which agents' keys are restored next to a database. @throws StartupError */
function lockDirOfKeys({ to, dataDir }: RestoreRequest, resources: AsyncDisposableStack): void {
  if (to.kind === 'directory' || dataDir === null) return;
  openDataDir(dataDir);
  resources.adopt(lockDataDir(dataDir), (lock) => lock.release());
}

/** Keys that wait in a hidden directory are left by a restore that was killed. @throws StartupError */
function assertNoAgentKeys({ dataDir }: RestoreRequest): void {
  if (dataDir === null) return;
  const { agentsDir } = dataDirPaths(dataDir);
  if (!existsSync(agentsDir) || readdirSync(agentsDir).every((name) => name.startsWith('.'))) return;
  throw new StartupError(
    `${agentsDir} has private keys of agents, which the restore would replace. Nothing was changed. Move them away, or give another --data-dir.`,
  );
}

/** @throws StartupError */
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
): Promise<readonly SealedAgentKey[]> {
  const inserted = new Map<string, number>();
  const agentKeys: SealedAgentKey[] = [];
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
