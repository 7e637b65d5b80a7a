/**
 * Replaces stored values in a .env file with references. The new content is written to a temporary file, which is
 * renamed over the previous one, so that the file is complete at every moment. Every other byte, its owner and its mode
 * stay.
 */
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errnoSuffix } from '../../platform/errors.ts';
import { parseEnvFile } from '../../run/env-file.ts';
import { writeReference } from '../../run/references.ts';
import { openDirectly, readHandle } from '../input.ts';
import { type ImportRow, toPath } from './import-plan.ts';

export interface EnvFile {
  readonly path: string;
  readonly name: string;
  readonly bytes: Buffer;
}

/** The file was not changed; the message contains the reason. */
export class RewriteError extends Error {}

/**
 * The content with references in place of the values in `stored`, and their number. An assignment is replaced only if
 * its value is the one that was stored.
 */
export function withReferences({ name, bytes }: EnvFile, prefix: readonly string[], stored: readonly ImportRow[]) {
  const rows = new Map(stored.map((row) => [row.path, row]));
  const parts: Buffer[] = [];
  let [at, replaced] = [0, 0];
  for (const { name: variable, value, valueSpan } of parseEnvFile(bytes, name)) {
    const target = toPath(prefix, [variable]);
    const row = 'path' in target ? rows.get(target.path) : undefined;
    if (row?.draft.value.reveal() !== value.reveal()) continue;
    const [from, to] = valueSpan;
    parts.push(bytes.subarray(at, from), Buffer.from(writeReference(row.path, row.service !== null)));
    at = to;
    replaced += 1;
  }
  return { content: Buffer.concat([...parts, bytes.subarray(at)]), replaced };
}

/**
 * Keeps owner and mode. Resolves when the file is on disk. @throws RewriteError when the file has changed or cannot be
 * replaced
 */
export async function rewrite(file: string, before: Buffer, after: Buffer): Promise<void> {
  const unfinished = join(dirname(file), `${basename(file)}.${crypto.randomUUID()}.unfinished`);
  try {
    await using handle = await openDirectly(file);
    const { mode, uid, gid, nlink } = await handle.stat();
    if (nlink > 1) throw new RewriteError('it has a hard link, which would keep the value');
    // ORDER: private until it has the owner and mode of the file that it replaces.
    await using written = await open(unfinished, 'wx', 0o600);
    await written.writeFile(after);
    const own = await written.stat();
    if (own.uid !== uid || own.gid !== gid) await written.chown(uid, gid);
    await written.chmod(mode & 0o7777);
    await written.sync();
    // Opened again because an editor may have replaced the file.
    await using current = await openDirectly(file);
    const found = await readHandle(current, before.length);
    if (typeof found === 'string' || !found.equals(before)) throw new RewriteError('it has changed since it was read');
    await rename(unfinished, file);
    // Some systems cannot open directories; the rename is complete anyway.
    await using directory = await open(dirname(file), 'r').catch(() => null);
    await directory?.sync().catch(() => undefined);
  } catch (error) {
    await rm(unfinished, { force: true });
    if (error instanceof RewriteError) throw error;
    const code = errnoSuffix(error);
    throw new RewriteError(code === ' (ELOOP)' ? 'it is a symbolic link' : `it cannot be replaced${code}`);
  }
}
