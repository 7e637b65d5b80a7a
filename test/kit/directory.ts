/** Temporary directories that are removed with their test. */
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Registers clean-up with a test, a suite or a file (`{ after }` of node:test). */
export interface Scope {
  after(cleanUp: () => unknown): void;
}

/** A separate scope for one run of a property, cleaned up at its end. */
export async function withScope<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  await using cleaning = new AsyncDisposableStack();
  return await work({ after: (cleanUp) => cleaning.defer(async () => void (await cleanUp())) });
}

export function temporaryDirectory(scope: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), 'leasehold-test-'));
  scope.after(async () => {
    await closeUsers((path) => path.startsWith(directory));
    // A process that is ending may still create a file there.
    await rm(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  });
  return directory;
}

const users = new Set<readonly [place: string, close: () => unknown]>();

/**
 * Calls `close` before the temporary directory of the path, or the database at the URL, is removed, so that a service
 * stops first. Returns a function that forgets it.
 */
export function closeBeforeRemoval(place: string, close: () => unknown): () => void {
  const user = [place, close] as const;
  users.add(user);
  return () => void users.delete(user);
}

/** Closes what uses the places. */
export async function closeUsers(isUsed: (place: string) => boolean): Promise<void> {
  for (const [place, close] of users) if (isUsed(place)) await Promise.resolve(close()).catch(() => undefined);
}
