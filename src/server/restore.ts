/**
 * Restores a backup into an empty data directory or database, all or nothing: the file is read completely before
 * anything is created, and the rows are verified before they are committed. The restore is an entry of the log.
 * SOURCE: docs/backup.md.
 */
import { existsSync, readdirSync } from 'node:fs';
import { decryptFile } from '../backup/encryption.ts';
import { BackupError, damaged } from '../backup/errors.ts';
import { type BackupSummary, verifyBackup } from '../backup/file.ts';
import { type Cell, readRecords, type SealedAgentKey } from '../backup/records.ts';
import { decodeStoredKeys } from '../backup/stored-keys.ts';
import { timingSafeEqualText } from '../crypto/encoding.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { dataDirPaths } from '../platform/data-dir-paths.ts';
import { StartupError } from '../platform/errors.ts';
import { readMigrations } from '../store/migrations.ts';
import { TABLES } from '../store/schema.ts';
import type { Row } from '../store/statement.ts';
import type { Column, Table } from '../store/table.ts';
import type { TransferTarget, VaultMetadata } from '../store/transfer.ts';
import { lockDataDir, openDataDir } from './data-dir.ts';
import { describeLocation, openTarget } from './locations.ts';
import { openOffline } from './offline-keys.ts';
import { RestoreChecks } from './restore-checks.ts';
import { checkCopy } from './restore-copy-check.ts';
import { type FinishedRestore, finishRestore } from './restore-finish.ts';
import type { RestoreRequest } from './restore-request.ts';

/** How a running restore reports, and is cancelled. */
export interface RestoreReporter {
  readonly signal: AbortSignal;
  /** A line about the step that begins, or a warning. */
  say(line: string): void;
  /** How many rows of a table were restored. */
  progress(what: string, rows: number, of: number): void;
}

export interface RestoreResult extends FinishedRestore {
  readonly summary: BackupSummary;
  readonly unsealed: number;
  /** What does not verify, if that is accepted. */
  readonly findings: readonly string[];
}

/** @throws BackupError, StartupError, StoreError, the signal's reason */
export async function restore(request: RestoreRequest, reporter: RestoreReporter): Promise<RestoreResult> {
  const { file, opener, to } = request;
  await using resources = new AsyncDisposableStack();
  reporter.say(`Reading ${file}.`);
  const summary = await verifyBackup(file, opener);
  const keys = await openOffline(
    decodeStoredKeys(summary.header.keys),
    request,
    'the vault in the backup',
    reporter.say,
  );
  const metadata = readMetadata(summary, keys);
  lockDirOfKeys(request, resources);
  // WHY 0: no MAC covers the time in the record. That of the last verified entry applies.
  const target = await openTarget(to, { ...metadata, highWaterTime: 0 }, resources);
  assertNoAgentKeys(request);
  reporter.say(`Restoring to ${describeLocation(to)}.`);
  const checks = new RestoreChecks(keys, summary.totals.rows['credentials'] ?? 0);
  const agentKeys = await insertRows(request, summary, target.writer, checks, reporter);
  const found = checks.findings(metadata);
  assertAccepted(found, request);
  const copy = await target.commit();
  const { header } = summary;
  reporter.say('Verifying the restored state.');
  const findings = [...found, ...(await checkCopy({ copy, header, keys, signal: reporter.signal }))];
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

/** @throws BackupError, StartupError */
function readMetadata({ header }: BackupSummary, keys: VaultKeys): VaultMetadata {
  const latest = readMigrations('sqlite').length;
  if (header.schema > latest) {
    throw new BackupError(
      `The backup has schema ${header.schema}, this Leasehold knows up to ${latest}. Restore it with the Leasehold ${header.leasehold} that wrote it, or a newer one.`,
    );
  }
  const metadata = header.vault as VaultMetadata;
  const { keyCheck, vaultId, createdAt, highWaterTime, head, highestSeq } = metadata;
  const areNumbers = [createdAt, highWaterTime, highestSeq].every(Number.isSafeInteger);
  if (typeof keyCheck !== 'string' || !areNumbers || !isHead(head)) {
    throw damaged('the record of the vault has an unknown form');
  }
  if (!timingSafeEqualText(keyCheck, keys.checkValue) || vaultId !== header.keys.vaultId) {
    throw damaged('the record of the vault is not that of its keys');
  }
  return metadata;
}

/** The head record has a MAC, which is checked at the end of the chain. */
function isHead(head: unknown): boolean {
  if (head === null) return true;
  if (typeof head !== 'object') return false;
  const { seq, epoch, hmac, mac, tree, control }: Readonly<Record<string, unknown>> = { ...head };
  const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string';
  const areTexts = typeof hmac === 'string' && typeof mac === 'string' && isTextOrNull(tree) && isTextOrNull(control);
  return Number.isSafeInteger(seq) && Number.isSafeInteger(epoch) && areTexts;
}

/** Resolves to the keys of agents. @throws BackupError, StoreError, the signal's reason */
async function insertRows(
  { file, opener }: RestoreRequest,
  { header, totals }: BackupSummary,
  writer: TransferTarget,
  checks: RestoreChecks,
  { signal, progress }: RestoreReporter,
): Promise<readonly SealedAgentKey[]> {
  const inserted = new Map<string, number>();
  const agentKeys: SealedAgentKey[] = [];
  let position = 0;
  for await (const record of readRecords(decryptFile(file, opener))) {
    signal.throwIfAborted();
    if (record.kind === 'agentKeys') for (const key of record.keys) agentKeys.push(key);
    if (record.kind !== 'rows') continue;
    const at = TABLES.findIndex(({ name }) => name === record.table);
    const table = TABLES[at];
    // Rows refer to those of earlier tables.
    if (table === undefined || at < position) throw damaged(`the table ${record.table} is unknown or out of order`);
    position = at;
    const rows = record.rows.map((cells) => toRow(table, header.tables[record.table] ?? [], cells));
    for (const row of rows) checks.check(table, row);
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

/** A column that an older backup lacks is null. @throws BackupError */
function toRow({ name, columns }: Table<object>, names: readonly string[], cells: readonly Cell[]): Row {
  const given = new Map(names.map((column, index) => [column, cells[index] ?? null]));
  return Object.fromEntries(
    columns.map((column) => [column.name, toValue(name, column, given.get(column.name) ?? null)]),
  );
}

function toValue(table: string, { name, type }: Column, cell: Cell): string | number | Uint8Array | null {
  if (cell === null) return null;
  const isRight = type === 'number' ? Number.isSafeInteger(cell) : typeof cell === 'string';
  if (!isRight) throw damaged(`a value of ${table}.${name} has another type`);
  return type === 'bytes' ? Buffer.from(String(cell), 'base64') : cell;
}
