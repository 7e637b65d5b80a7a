/**
 * Whether the files that the process has open are still the files at their paths. What is written to a file that was
 * removed or replaced is lost when the process ends, and no write fails.
 */
import { statSync } from 'node:fs';
import { StoreError } from '../errors.ts';

interface OpenedFile {
  readonly path: string;
  readonly device: number;
  readonly inode: number;
}

export class OpenedFiles {
  readonly #files: readonly OpenedFile[];

  /** Create it when the files are opened. */
  constructor(paths: readonly string[]) {
    this.#files = paths.map((path) => {
      const { dev: device, ino: inode } = statSync(path);
      return { path, device, inode };
    });
  }

  /** Takes a few microseconds per file. @throws StoreError `fatal` if one was removed, moved or replaced */
  assertInPlace(): void {
    for (const file of this.#files) {
      if (isInPlace(file)) continue;
      throw new StoreError('fatal', `${file.path} was removed or replaced under the running service`);
    }
  }
}

function isInPlace({ path, device, inode }: OpenedFile): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.dev === device && found.ino === inode;
  } catch {
    return false;
  }
}
