/** A backup file: written privately, read again before it gets its name, and verified. */
import { existsSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { publishNewFile, temporaryPath, writeNewFile } from '../platform/private-files.ts';
import { decryptFile, encrypt, type Lock, type Opener } from './encryption.ts';
import { BackupError, damaged } from './errors.ts';
import { readRecords } from './record-reader.ts';
import type { BackupHeader, BackupTotals } from './records.ts';

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

/** The destination of a backup: its name may depend on its content. */
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
    assertAbsent(file);
    publishNewFile(temporary, file);
    return { ...summary, file, sizeBytes };
  } finally {
    rmSync(temporary, { force: true });
  }
}

async function writeSynced(path: string, bytes: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<number> {
  writeNewFile(path, '');
  await using handle = await open(path, 'r+');
  let sizeBytes = 0;
  for await (const chunk of bytes) {
    signal.throwIfAborted();
    await handle.writeFile(chunk);
    sizeBytes += chunk.length;
  }
  await handle.sync();
  return sizeBytes;
}

export function assertAbsent(file: string): void {
  if (existsSync(file)) throw new BackupError(`${file} already exists. Choose another name. A file is never replaced.`);
}
