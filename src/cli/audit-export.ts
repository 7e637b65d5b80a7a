/** Streams the audit log into a file or a pipe. */

import { existsSync, writeFileSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { errnoSuffix } from '../platform/errno.ts';
import { UsageError } from '../platform/errors.ts';
import type { Invocation } from './command.ts';
import { startProgress } from './progress.ts';
import { printNotice } from './terminal.ts';

const NEWLINE = 10;

interface ExportFiles {
  /** Null for standard output. */
  readonly out: string | null;
  /** For the head record. */
  readonly head: string | null;
}

/** Creates the file only when the export is complete. @throws UsageError, LeaseholdError */
export async function exportLog(invocation: Invocation, vault: Leasehold, files: ExportFiles): Promise<void> {
  const { terminal, signal } = invocation;
  const toPath = (file: string | null): string | null =>
    file === null ? null : resolve(terminal.workingDirectory, file);
  const [out, headFile] = [toPath(files.out), toPath(files.head)];
  // ORDER: checked before any request; a file created meanwhile fails the write.
  for (const file of [out, headFile]) if (file !== null && existsSync(file)) throw alreadyExists(file);
  const { meta } = await vault.audit.list({ limit: 1 }, { signal });
  const { head, bytes } = await vault.audit.export({ signal });
  const progress = startProgress(terminal, 'Exporting');
  let entries = 0;
  let last = NEWLINE;
  const counting = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      for (const byte of chunk) if (byte === NEWLINE) entries += 1;
      last = chunk.at(-1) ?? last;
      progress.show(entries, meta.total);
      done(null, chunk);
    },
  });
  const unfinished = out === null ? null : `${out}.unfinished`;
  const file = unfinished === null ? null : await makeFile(unfinished);
  try {
    const source = Readable.fromWeb(bytes as Parameters<typeof Readable.fromWeb>[0]);
    const target = file === null ? terminal.stdout : file.createWriteStream();
    await pipeline(source, counting, target, { end: file !== null, signal });
    if (last !== NEWLINE) throw new LeaseholdError('UNREACHABLE', 'the export ended in the middle of an entry');
    if (out !== null && unfinished !== null) await finish(unfinished, out);
    if (headFile !== null)
      writeFileSync(headFile, `leasehold-audit-head: ${head ?? ''}\n`, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if (unfinished !== null) await rm(unfinished, { force: true });
    // The reader closed the pipe.
    if (file === null && errnoSuffix(error) === ' (EPIPE)') return;
    throw signal.aborted ? signal.reason : toUsageError(error);
  } finally {
    progress.end();
  }
  if (out !== null) printNotice(terminal, `Wrote ${entries} entries to ${out}.`);
}

async function makeFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    if (errnoSuffix(error) === ' (EEXIST)')
      throw alreadyExists(path, ' It belongs to another export that was interrupted or is still running.');
    throw toUsageError(error);
  }
}

async function finish(unfinished: string, out: string): Promise<void> {
  // ORDER: created exclusively first, so that the rename never replaces another file.
  writeFileSync(out, '', { flag: 'wx', mode: 0o600 });
  await rename(unfinished, out);
}

function alreadyExists(path: string, why = ''): UsageError {
  return new UsageError(`${path} already exists`, `Choose another name or delete the file.${why}`);
}

function toUsageError(error: unknown): unknown {
  if (error instanceof LeaseholdError || error instanceof UsageError) return error;
  if (errnoSuffix(error) === ' (EEXIST)')
    return new UsageError('the file already exists', 'Choose another name or delete the file.');
  if (error instanceof Error && 'syscall' in error)
    return new UsageError(`the file cannot be written (${String(error.message)})`);
  return new LeaseholdError('UNREACHABLE', 'the export was interrupted', { cause: error });
}
