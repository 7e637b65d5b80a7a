/** Streams the audit log into a file or a pipe. */

import { createWriteStream, existsSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LeaseholdError } from '../client/errors.ts';
import type { Leasehold } from '../client/leasehold.ts';
import { errnoSuffix, StartupError, UsageError } from '../platform/errors.ts';
import { publishNewFile, temporaryPath, writeNewFile, writeNewPrivateFile } from '../platform/private-files.ts';
import type { Invocation } from './command.ts';
import { startProgress } from './progress.ts';
import { printNotice } from './terminal.ts';

const NEWLINE = 10;

interface ExportFiles {
  /** Null for standard output. */
  readonly out: string | null;
  /** The file for the head record; null for none. */
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
  let last: number | undefined = NEWLINE;
  async function* count(chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      for (const byte of chunk) if (byte === NEWLINE) entries += 1;
      last = chunk.at(-1) ?? last;
      progress.show(entries, meta.total);
      yield chunk;
    }
  }
  const temporary = out === null ? null : temporaryPath(out);
  try {
    if (temporary !== null) writeNewFile(temporary, '');
    const target = temporary === null ? terminal.stdout : createWriteStream(temporary, { flags: 'r+', flush: true });
    await pipeline(bytes, count, target, { end: temporary !== null, signal });
    if (last !== NEWLINE) throw new LeaseholdError('UNREACHABLE', 'the export ended in the middle of an entry');
    if (out !== null && temporary !== null) publishNewFile(temporary, out);
    if (headFile !== null) writeNewPrivateFile(headFile, `leasehold-audit-head: ${head ?? ''}\n`);
  } catch (error) {
    // The reader closed the pipe.
    if (temporary === null && errnoSuffix(error) === ' (EPIPE)') return;
    throw signal.aborted ? signal.reason : toUsageError(error);
  } finally {
    if (temporary !== null) rmSync(temporary, { force: true });
    progress.end();
  }
  if (out !== null) printNotice(terminal, `Wrote ${entries} entries to ${out}.`);
}

export function alreadyExists(what: string): UsageError {
  return new UsageError(`${what} already exists`, 'Choose another name. A file is never replaced.');
}

function toUsageError(error: unknown): unknown {
  if (error instanceof LeaseholdError || error instanceof StartupError) return error;
  if (errnoSuffix(error) === ' (EEXIST)') return alreadyExists('the file');
  if (error instanceof Error && 'syscall' in error)
    return new UsageError(`the file cannot be written (${String(error.message)})`);
  return new LeaseholdError('UNREACHABLE', 'the export was interrupted', { cause: error });
}
