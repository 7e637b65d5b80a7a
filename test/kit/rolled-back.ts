/** A service whose log has lost entries: it serves health, and lists, verification and export of the log. */
import assert from 'node:assert/strict';
import { assertRejected } from './responses.ts';
import { startTestService, type TestService } from './service.ts';

/** Whether the service refuses what depends on lost entries. */
export async function isRolledBack({ anonymous }: TestService): Promise<boolean> {
  return (await anonymous.get('/api/v1/health')).body?.data?.status === 'rolled_back';
}

/** What is served is right, and the warning matches. */
export async function assertRolledBack(service: TestService, loss: RegExp): Promise<void> {
  const { admin, anonymous, warnings } = service;
  assert.match(warnings[0] ?? '', loss);
  assert.match(warnings[0] ?? '', /run leasehold audit accept-rollback, or start once with --accept-rollback\.$/);
  assert.equal(await isRolledBack(service), true);
  assert.equal((await anonymous.get('/readyz')).status, 503);
  assert.equal((await admin.get('/api/v1/audit/verify')).status, 200);
  assert.equal((await admin.get('/api/v1/audit/export')).status, 200);
  assertRejected(await admin.get('/api/v1/credentials'), 'UNAVAILABLE');
}

/** Starts on a rolled-back vault and stops again. */
export async function tryRolledBack(
  scope: Parameters<typeof startTestService>[0],
  dataDir: string,
  loss: RegExp,
  flags: readonly string[] = [],
): Promise<void> {
  const service = await startTestService(scope, flags, dataDir);
  await assertRolledBack(service, loss);
  await service.stop();
}
