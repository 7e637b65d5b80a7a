// Checkpoint files outside the data directory: startup compares the log with them.

import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { tryRolledBack } from '../kit/rolled-back.ts';
import { startTestService } from '../kit/service.ts';

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

test('a log that is rolled back with its data directory does not extend a checkpoint elsewhere', async (t) => {
  const [dataDir, elsewhere] = [join(temporaryDirectory(t), 'data'), join(temporaryDirectory(t), 'kept.log')];
  const flags = ['--checkpoint-file', elsewhere];
  const first = await startTestService(t, flags, dataDir);
  await first.admin.post('/api/v1/credentials', { path: 'a', value: 'v' });
  await first.stop();
  const old = join(temporaryDirectory(t), 'old');
  cpSync(dataDir, old, { recursive: true });
  const second = await startTestService(t, flags, dataDir);
  await second.admin.post('/api/v1/credentials', { path: 'b', value: 'v' });
  await second.stop();
  const newest = linesOf(elsewhere).at(-1);
  assert.equal(newest.note, linesOf(join(dataDir, 'checkpoints.log')).at(-1).note);
  // Without the other file nothing reveals the rollback: the files of the directory were rolled back with it.
  await tryRolledBack(t, old, new RegExp(`signed checkpoint of ${newest.size} entries`), flags);
  const accepted = await startTestService(t, [...flags, '--accept-rollback'], old);
  const { origin } = (await accepted.admin.get('/api/v1/audit/checkpoint')).body.data;
  assert.equal(origin, `${newest.origin}/2`);
  const [start] = (await accepted.admin.get('/api/v1/audit?event_type=service.start&limit=1')).body.data;
  assert.match(start.reason, /has lost entries/);
  await accepted.stop();
  // The new log extends its own checkpoints.
  await (await startTestService(t, flags, old)).stop();
});
