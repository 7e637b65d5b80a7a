// The vault's clock continues from the time of the last entry, so that time counts only if the entry's MAC is valid.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { executeSql, selectRows } from '../kit/direct-db.ts';
import { startTestService } from '../kit/service.ts';
import { startTestClock } from '../kit/test-clock.ts';

const LEASE_MS = 3600_000;
/** Tolerance for a busy machine. */
const TOLERANCE_MS = 600_000;

async function stoppedVault(t: TestContext): Promise<{ dataDir: string; last: number }> {
  const service = await startTestService(t);
  await service.admin.post('/api/v1/credentials', { path: 'prod/key', value: 'v' });
  await service.stop();
  const [row] = await selectRows(service.dataDir, 'SELECT max(seq) AS seq FROM audit_entries');
  return { dataDir: service.dataDir, last: Number(row?.['seq']) };
}

async function leaseEnd(t: TestContext, dataDir: string): Promise<{ endsInMs: number; warnings: readonly string[] }> {
  const service = await startTestService(t, [], dataDir);
  const { data } = (await service.admin.get('/api/v1/credentials/prod/key')).body;
  const endsInMs = Date.parse(data.expires_at) - Date.now();
  const verdict = (await service.admin.get('/api/v1/audit/verify')).body.data;
  assert.equal(verdict.valid, false);
  await service.stop();
  return { endsInMs, warnings: service.warnings };
}

for (const year of [new Date().getUTCFullYear() + 1, 9999]) {
  test(`a time of the year ${year} written into the last entry does not set the vault's clock`, async (t) => {
    const { dataDir, last } = await stoppedVault(t);
    await executeSql(dataDir, `UPDATE audit_entries SET timestamp = '${year}-12-31T00:00:00.000Z' WHERE seq = ${last}`);
    const { endsInMs, warnings } = await leaseEnd(t, dataDir);
    assert.equal(endsInMs > 0 && endsInMs < LEASE_MS + TOLERANCE_MS, true, `the lease ends in ${endsInMs} ms`);
    assert.match(warnings.join('\n'), new RegExp(`^The last entry of the audit log \\(entry ${last}\\) was altered`));
  });
}

test('a clock after the year 9999 prevents the start', async (t) => {
  const clock = startTestClock(t);
  const { dataDir } = await stoppedVault(t);
  await clock.moveTo(new Date(Date.UTC(10_000, 0, 2)).toISOString());
  await assert.rejects(
    startTestService(t, [], dataDir),
    /clock shows a time after the year 9999\. Set it to the correct time\.$/,
  );
});
