/** An env file with references where values stood: written beside it, then put in its place, so that it is the old or the new one. */
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { errnoSuffix } from '../../platform/errno.ts';
import { openDirectly, readHandle } from '../given-file.ts';

export interface Replacement {
  /** Bytes of the file, the end is not part of it. */
  readonly span: readonly [from: number, to: number];
  readonly text: string;
}

/** A file that is left as it is, and why. */
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

/** Owner and mode stay. Resolves when it is on the disk. @throws NotRewritten where the file is not what it was, or can't be replaced */
export async function rewrite(file: string, was: Buffer, becomes: Buffer): Promise<void> {
  const unfinished = join(dirname(file), `${basename(file)}.${crypto.randomUUID()}.unfinished`);
  try {
    await using handle = await openDirectly(file);
    const { mode, uid, gid, nlink } = await handle.stat();
    if (nlink > 1) throw new RewriteError('it has another name (a hard link), which would keep the value');
    // ORDER: private until it has the owner and the mode of the one whose place it takes.
    await using written = await open(unfinished, 'wx', 0o600);
    await written.writeFile(becomes);
    const own = await written.stat();
    if (own.uid !== uid || own.gid !== gid) await written.chown(uid, gid);
    await written.chmod(mode & 0o7777);
    await written.sync();
    // Opened again: an editor may have put another file in its place.
    await using now = await openDirectly(file);
    const found = await readHandle(now, was.length);
    if (typeof found === 'string' || !found.equals(was))
      throw new RewriteError('it was changed meanwhile; nothing in it was replaced');
    await rename(unfinished, file);
    await syncFolder(dirname(file));
  } catch (error) {
    await rm(unfinished, { force: true });
    if (error instanceof RewriteError) throw error;
    const code = errnoSuffix(error);
    throw new RewriteError(code === ' (ELOOP)' ? 'it is a link' : `it cannot be replaced${code}`);
  }
}

async function syncFolder(folder: string): Promise<void> {
  // Not every system opens folders; the rename is done there too.
  await using handle = await open(folder, 'r').catch(() => null);
  await handle?.sync().catch(() => undefined);
}
