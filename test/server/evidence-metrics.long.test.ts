// Metrics of what survives a loss: checkpoints and their files, backups, and the use of the data key.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { until } from '../kit/log-receivers.ts';
import { type Family, seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService, type TestService } from '../kit/service.ts';

const AGE = 'leasehold_backup_age_seconds';
const isShown = (families: ReadonlyMap<string, Family>, name: string): boolean =>
  (families.get(name)?.series.length ?? 0) > 0;

/** The page with the first count of a server that has just started. */
async function firstCount({ address }: TestService) {
  await until(async () => isShown(await scrape(address), 'leasehold_data_key_seals'));
  return scrape(address);
}

const missing = join(temporaryDirectory({ after }), 'missing');
const paths = ['a', 'b'].map((name) => join(missing, name));
const service = await startTestService({ after }, ['--checkpoint-file', paths.join(',')]);
const { address, admin } = service;

test('a vault without a backup has no age of one', async () => {
  assert.equal(isShown(await firstCount(service), AGE), false);
});

test('the newest checkpoint has an age, and entries after it are counted', async () => {
  await until(async () => isShown(await scrape(address), 'leasehold_checkpoint_age_seconds'));
  await admin.get('/api/v1/audit/checkpoint');
  const before = seriesValue(await scrape(address), 'leasehold_checkpoint_unsigned_entries');
  for (let number = 0; number < 5; number++) await admin.post('/api/v1/credentials', { path: 'a', value: 'a value' });
  const families = await scrape(address);
  assert.equal(seriesValue(families, 'leasehold_checkpoint_unsigned_entries') - before, 5);
});

test('a checkpoint file that cannot be written is late, and the one of the data directory is not', async () => {
  const of = (families: ReadonlyMap<string, Family>, file: string) => ({
    waiting: seriesValue(families, 'leasehold_checkpoint_waiting_seconds', { file }),
    failures: seriesValue(families, 'leasehold_checkpoint_write_failures_total', { file }),
  });
  await until(async () => of(await scrape(address), 'file-2').failures > 1);
  const families = await scrape(address);
  for (const late of ['file', 'file-2']) assert.ok(of(families, late).waiting > 0, late);
  assert.deepEqual(of(families, 'data-directory'), { waiting: 0, failures: 0 });
});

test('a node that starts later shows the age of the newest backup and the count of encrypted values', async (t) => {
  await service.agent('reader', { 'a/*': ['retrieve'] });
  assert.equal((await admin.post('/api/v1/backup', {})).status, 200);
  const complete = '/api/v1/audit?event_type=service.backup_result&result=allowed';
  await until(async () => (await admin.get(complete)).body.data.length > 0);
  await until(async () => isShown(await scrape(address), AGE));
  const shown = seriesValue(await scrape(address), AGE);
  await service.stop();
  const later = await firstCount(await startTestService(t, [], service.dataDir));
  assert.ok(seriesValue(later, AGE) > shown);
  // Five values of credentials; rows of a policy are none.
  assert.equal(seriesValue(later, 'leasehold_data_key_seals'), 5);
});
