/**
 * Reads a backup completely before anything is written: opens its keys, and checks every field, every reference, the
 * chain of the log, the MACs and a sample of the values. It writes nothing.
 */
import { isDeepStrictEqual } from 'node:util';
import { decryptFile } from '../backup/encryption.ts';
import { damaged } from '../backup/errors.ts';
import type { BackupSummary } from '../backup/file.ts';
import { readRecords } from '../backup/record-reader.ts';
import type { BackupHeader, BackupTotals, Cell } from '../backup/records.ts';
import { decodeStoredKeys } from '../backup/stored-keys.ts';
import { checkpointSigner, verifierKey } from '../crypto/checkpoint.ts';
import type { VaultKeys } from '../crypto/keys.ts';
import { timingSafeEqualText } from '../crypto/primitives.ts';
import { TABLES } from '../store/schema.ts';
import type { Row } from '../store/statement.ts';
import type { Column, Table } from '../store/table.ts';
import type { VaultMetadata } from '../store/transfer.ts';
import { openOffline } from './offline-keys.ts';
import { RestoreChecks } from './restore-checks.ts';
import type { RestoreReporter, RestoreRequest } from './restore-request.ts';

export interface ReadBackup {
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
export async function readBackup(request: RestoreRequest, { signal, say }: RestoreReporter): Promise<ReadBackup> {
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

/** Whether the header's parts are about one vault. @throws BackupError */
function assertConsistent(header: BackupHeader, keys: VaultKeys): void {
  const { vault, vault_id, log_end, key_slots } = header;
  const stored = decodeStoredKeys(header.keys);
  const isSameVault = vault.vaultId === vault_id && stored.vaultId === vault_id && stored.keyCheck === vault.keyCheck;
  if (!isSameVault || !timingSafeEqualText(vault.keyCheck, keys.checkValue)) {
    throw damaged('the record of the vault is not that of its keys');
  }
  const { head } = vault;
  const end = head === null ? null : { seq: head.seq, hmac: head.hmac, mac: head.mac };
  const named = stored.slots.map(({ name, kind }) => ({ name, kind }));
  if (isDeepStrictEqual([end, named], [log_end === null ? null : { ...log_end }, key_slots])) return;
  throw damaged('record 1 (the header): log_end or key_slots differ from the record of the vault or its keys');
}

export function toRows(
  header: BackupHeader,
  { table: name, rows }: { readonly table: string; readonly rows: readonly (readonly Cell[])[] },
): { readonly table: Table<object>; readonly rows: readonly Row[] } {
  const table = TABLES.find((each) => each.name === name);
  if (table === undefined) throw damaged('it has rows of an unknown table');
  const columns = header.tables[name] ?? [];
  return { table, rows: rows.map((cells) => toRow(table, columns, cells)) };
}

/** A column that an older backup lacks is null. */
function toRow({ columns }: Table<object>, names: readonly string[], cells: readonly Cell[]): Row {
  return Object.fromEntries(columns.map((column) => [column.name, toValue(column, cells[names.indexOf(column.name)])]));
}

/** The rules of the backup have checked the type. */
function toValue({ type }: Column, cell: Cell | undefined): string | number | Uint8Array | null {
  return type === 'bytes' && typeof cell === 'string' ? Buffer.from(cell, 'base64') : (cell ?? null);
}
