/**
 * Restores a backup into an empty data directory or database, all or nothing: the file is read and verified completely,
 * and its author confirmed, before anything is created. The restore is an entry of the audit log. Anyone who knows a
 * public recipient and the public key of a key slot can make a complete vault that decrypts and verifies. Only the
 * vault's own signing key tells it from a forged one. SOURCE: docs/backup.md.
 */
import { existsSync, readdirSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { decryptFile } from '../backup/encryption.ts';
import { damaged } from '../backup/errors.ts';
import type { BackupSummary } from '../backup/file.ts';
import { readRecords } from '../backup/record-reader.ts';
import {
  type BackupHeader,
  type BackupTotals,
  type Cell,
  decodeStoredKeys,
  type EncryptedAgentKey,
  encodeStoredKeys,
} from '../backup/records.ts';
import { checkpointSigner, verifierKey } from '../crypto/checkpoint.ts';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import type { VaultKeys } from '../crypto/vault-keys.ts';
import { startClock } from '../ledger/clock.ts';
import { StartupError } from '../platform/errors.ts';
import { dataDirPaths } from '../platform/paths.ts';
import { quoteForShell } from '../platform/shell-command.ts';
import type { Store } from '../store/port.ts';
import { TABLES } from '../store/schema.ts';
import type { Row } from '../store/statement.ts';
import type { Column, Table } from '../store/table.ts';
import type { TransferTarget, VaultMetadata } from '../store/transfer.ts';
import { readStoredKeys } from '../store/vault-metadata.ts';
import { StateChecker } from '../vault/audit/verification/state-scan.ts';
import { lockDataDir, openDataDir } from './data-dir.ts';
import { openOffline } from './offline-keys.ts';
import { RestoreChecks } from './restore-checks.ts';
import { type FinishedRestore, finishRestore } from './restore-finish.ts';
import type { RestoreReporter, RestoreRequest } from './restore-request.ts';
import { describeLocation, openTarget } from './restore-target.ts';

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
  const findings = [...read.findings, ...(await checkCopy({ copy, header, keys, signal: reporter.signal }))];
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

/** @throws StartupError unless the verifier key is the given one, or the operator confirms it */
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
    `The backup is of the vault ${vault_id} (${store}), taken at ${created_at} by Leasehold ${leasehold}, through entry ${log_end?.seq ?? 0} of the log: ${contents.join(', ')}.`,
    'Anyone who knows your public recipient can make a backup that decrypts. Only this verifier key shows that your vault made it:',
    `  ${verifierKey}`,
  ];
}

const MAX_NAMED = 3;
const MAX_SHOWN_LENGTH = 200;

interface CommittedCopy {
  readonly copy: Store;
  readonly header: BackupHeader;
  readonly keys: VaultKeys;
  readonly signal: AbortSignal;
}

/** Verifies the copy. Returns one sentence for each problem. @throws BackupError if it cannot be opened, StoreError */
async function checkCopy({ copy, header, keys, signal }: CommittedCopy): Promise<string[]> {
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

/** Escapes the subject: the log of a backup from elsewhere may name any subject. */
function printable(subject: string): string {
  return JSON.stringify(subject.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, MAX_SHOWN_LENGTH));
}

// Reads a backup completely before anything is written. Opens its keys, and checks every field, every reference, the
// chain of the audit log, the MACs and a sample of the values.

interface ReadBackup {
  readonly summary: BackupSummary;
  /** SHA-256 of its records, in hexadecimal. */
  readonly digest: string;
  readonly keys: VaultKeys;
  readonly metadata: VaultMetadata;
  readonly checks: RestoreChecks;
  /** The failed verifications, one sentence each. */
  readonly findings: readonly string[];
  /** The public keys of the vault's checkpoints, the newest one last. */
  readonly verifierKeys: readonly string[];
}

/** @throws BackupError, StartupError, the signal's reason */
async function readBackup(request: RestoreRequest, { signal, say }: RestoreReporter): Promise<ReadBackup> {
  let opened: { readonly header: BackupHeader; readonly keys: VaultKeys; readonly checks: RestoreChecks } | null = null;
  let end: { readonly totals: BackupTotals; readonly sha256: string } | null = null;
  for await (const record of readRecords(decryptFile(request.file, request.opener))) {
    signal.throwIfAborted();
    if (record.kind === 'header') {
      const { header } = record;
      const keys = await openOffline(decodeStoredKeys(header.keys), request, 'the vault in the backup', say);
      assertConsistent(header, keys);
      opened = { header, keys, checks: new RestoreChecks(keys) };
    }
    if (record.kind === 'rows' && opened !== null) {
      const { table, rows } = toRows(opened.header, record);
      for (const row of rows) opened.checks.check(table, row);
    }
    if (record.kind === 'end') end = record;
  }
  if (opened === null || end === null) throw damaged('it is empty');
  const { header, keys, checks } = opened;
  const findings = checks.findings(header.vault);
  const verifierKeys = keys.signing.map(({ generation }) => verifierKey(checkpointSigner(keys, generation)));
  const { totals, sha256 } = end;
  return { summary: { header, totals }, digest: sha256, keys, metadata: header.vault, checks, findings, verifierKeys };
}

/** Whether the header's parts belong to one vault. @throws BackupError */
function assertConsistent(header: BackupHeader, keys: VaultKeys): void {
  const { vault, vault_id, log_end, key_slots } = header;
  const stored = decodeStoredKeys(header.keys);
  const isSameVault = vault.vaultId === vault_id && stored.vaultId === vault_id && stored.keyCheck === vault.keyCheck;
  if (!isSameVault || !timingSafeEqualText(vault.keyCheck, keys.checkValue)) {
    throw damaged('the record of the vault does not belong to its keys');
  }
  const { head } = vault;
  const end = head === null ? null : { seq: head.seq, hmac: head.hmac, mac: head.mac };
  const named = stored.slots.map(({ name, kind }) => ({ name, kind }));
  if (isDeepStrictEqual([end, named], [log_end === null ? null : { ...log_end }, key_slots])) return;
  throw damaged('record 1 (the header): log_end or key_slots differ from the record of the vault or its keys');
}

function toRows(
  header: BackupHeader,
  { table: name, rows }: { readonly table: string; readonly rows: readonly (readonly Cell[])[] },
): { readonly table: Table<object>; readonly rows: readonly Row[] } {
  const table = TABLES.find((each) => each.name === name);
  if (table === undefined) throw damaged('it has rows of an unknown table');
  const columns = header.tables[name] ?? [];
  return { table, rows: rows.map((cells) => toRow(table, columns, cells)) };
}

function toRow({ columns }: Table<object>, names: readonly string[], cells: readonly Cell[]): Row {
  return Object.fromEntries(columns.map((column) => [column.name, toValue(column, cells[names.indexOf(column.name)])]));
}

/** The value of a cell. The rules of the backup have already checked its type. */
function toValue({ type }: Column, cell: Cell | undefined): string | number | Uint8Array | null {
  return type === 'bytes' && typeof cell === 'string' ? Buffer.from(cell, 'base64') : (cell ?? null);
}
