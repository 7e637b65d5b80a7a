/** Temporary directories that go away with their test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** What a kit needs of a test, a suite or a file (`{ after }` of node:test): a way to clean up after it. */
export interface Scope {
  after(cleanUp: () => unknown): void;
}

export function temporaryFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-test-'));
  scope.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
