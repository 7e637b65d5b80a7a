/** Temporary directories that go away with their test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** What a kit needs of a test or a suite: a way to clean up after it. */
export type Scope = Pick<TestContext, 'after'>;

export function temporaryFolder(scope: Scope): string {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-test-'));
  scope.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
