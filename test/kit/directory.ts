/** Temporary directories that go away with their test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What a kit needs of a test, a suite or a file (`{ after }` of node:test): a way to clean up after it. */
export interface Scope {
  after(cleanUp: () => unknown): void;
}

/** A scope of its own, cleaned up in the end: for one run of a property, of which a test has many. */
export async function withScope<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  await using cleaning = new AsyncDisposableStack();
  return await work({ after: (cleanUp) => cleaning.defer(async () => void (await cleanUp())) });
}

export function temporaryDirectory(scope: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-test-'));
  scope.after(async () => {
    for (const [path, close] of users)
      if (path.startsWith(directory)) await Promise.resolve(close()).catch(() => undefined);
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}

const users: (readonly [path: string, close: () => unknown])[] = [];

/** Has what uses the path closed before its temporary directory is removed: a service stops where its files go. */
export function closeBeforeRemoval(path: string, close: () => unknown): void {
  users.push([path, close]);
}
