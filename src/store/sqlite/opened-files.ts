/**
 * Whether the files that the process has open are still the files at their paths. What is written to a file that was
 * removed or replaced is lost when the process ends, and no write fails.
 */
import { type Stats, statSync } from 'node:fs';
import { StoreError } from '../errors.ts';

export class OpenedFiles {
  readonly #opened: ReadonlyMap<string, Stats>;

  /** Create it when the files are opened. */
  constructor(paths: readonly string[]) {
    this.#opened = new Map(paths.map((path) => [path, statSync(path)]));
  }

  /** Takes a few microseconds per file. @throws StoreError `fatal` if one was removed, moved or replaced */
  assertInPlace(): void {
    for (const [path, opened] of this.#opened) {
      if (isSame(path, opened)) continue;
      throw new StoreError('fatal', `${path} was removed or replaced under the running service`);
    }
  }
}

function isSame(path: string, { dev, ino }: Stats): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    return found?.dev === dev && found.ino === ino;
  } catch {
    return false;
  }
}
