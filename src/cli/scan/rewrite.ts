/** Replaces an env file atomically: writes the new content to a temporary file, then renames it over the old one. */
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errnoSuffix } from '../../platform/errno.ts';
import { openDirectly, readHandle } from '../input.ts';

export interface Replacement {
  /** Byte offsets in the file; `to` is exclusive. */
  readonly span: readonly [from: number, to: number];
  readonly text: string;
}

/** The file was not changed; the message says why. */
export class RewriteError extends Error {}

export function replaceSpans(bytes: Buffer, replacements: readonly Replacement[]): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  for (const { span, text } of replacements.toSorted((one, other) => one.span[0] - other.span[0])) {
    if (span[0] < at) throw new Error('replacements overlap');
    parts.push(bytes.subarray(at, span[0]), Buffer.from(text));
    at = span[1];
  }
  return Buffer.concat([...parts, bytes.subarray(at)]);
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
    if (typeof found === 'string' || !found.equals(before))
      throw new RewriteError('it has changed since it was scanned');
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
