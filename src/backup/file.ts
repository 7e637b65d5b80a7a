/** A backup file: written privately, read again before it gets its name, and verified. */
import { existsSync, linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncDir, temporaryPath } from '../platform/private-files.ts';
import { decryptFile, encrypt, type Lock, type Opener } from './encryption.ts';
import { BackupError, damaged } from './errors.ts';
import { readRecords } from './record-reader.ts';
import type { BackupHeader, BackupTotals } from './records.ts';

const PRIVATE_FILE = 0o600;

export interface BackupSummary {
  readonly header: BackupHeader;
  readonly totals: BackupTotals;
}

/** @throws BackupError if the file is not a complete backup, or the opener does not open it */
export async function verifyBackup(file: string, opener: Opener): Promise<BackupSummary> {
  let header: BackupHeader | null = null;
  let totals: BackupTotals | null = null;
  for await (const record of readRecords(decryptFile(file, opener))) {
    if (record.kind === 'header') ({ header } = record);
    if (record.kind === 'end') ({ totals } = record);
  }
  if (header === null || totals === null) throw damaged('it is empty');
  return { header, totals };
}

/** Where a backup goes: its name may depend on what it contains. */
export type NameBackup = (header: BackupHeader) => string;

export interface WrittenBackup extends BackupSummary {
  readonly file: string;
  readonly sizeBytes: number;
}

/**
 * Encrypts the records into a new file of `dir`, reads it again, and only then gives it its name. Otherwise nothing is
 * left. @throws BackupError, the signal's reason, an error of the system
 */
export async function writeBackup(
  dir: string,
  toFile: NameBackup,
  records: AsyncIterable<Uint8Array>,
  lock: Lock,
  signal: AbortSignal,
): Promise<WrittenBackup> {
  const temporary = temporaryPath(`${dir}/backup`);
  try {
    const { bytes, opener } = await encrypt(records, lock);
    const sizeBytes = await writeSynced(temporary, bytes, signal);
    const summary = await verifyBackup(temporary, opener);
    signal.throwIfAborted();
    const file = toFile(summary.header);
    publish(temporary, file);
    syncDir(dirname(file));
    return { ...summary, file, sizeBytes };
  } finally {
    rmSync(temporary, { force: true });
  }
}

async function writeSynced(path: string, bytes: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<number> {
  await using handle = await open(path, 'wx', PRIVATE_FILE);
  let sizeBytes = 0;
  for await (const chunk of bytes) {
    signal.throwIfAborted();
    await handle.writeFile(chunk);
    sizeBytes += chunk.length;
  }
  await handle.sync();
  return sizeBytes;
}

/** The errors of a file system without hard links, such as FAT, or of one that is mounted by another program. */
const WITHOUT_LINKS: readonly unknown[] = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'];

/**
 * Gives the complete file its name. WHY a link: it never replaces another file, and a crash leaves no file with the
 * name that is empty. @throws BackupError if the name exists
 */
function publish(temporary: string, file: string): void {
  assertAbsent(file);
  try {
    linkSync(temporary, file);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && WITHOUT_LINKS.includes(error.code))) throw error;
    renameToNew(temporary, file);
    return;
  }
  rmSync(temporary);
}

/** ORDER: created exclusively before the rename, which therefore never replaces another file. */
function renameToNew(temporary: string, file: string): void {
  writeFileSync(file, '', { flag: 'wx', mode: PRIVATE_FILE });
  try {
    renameSync(temporary, file);
  } catch (error) {
    rmSync(file, { force: true });
    throw error;
  }
}

/** @throws BackupError */
export function assertAbsent(file: string): void {
  if (existsSync(file)) throw new BackupError(`${file} already exists. Choose another name or delete the file.`);
}
