// Checkpoints outside the database: a start compares the log with them, and they reach a webhook.

import assert from 'node:assert/strict';
import { cpSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryDirectory } from '../kit/directory.ts';
import { tryRolledBack } from '../kit/rolled-back.ts';
import { startTestService } from '../kit/service.ts';
import { until } from '../vault/fixture.ts';

const linesOf = (file: string) =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));

test('a log that is rolled back with its data directory does not extend a checkpoint elsewhere', async (t) => {
  const [dataDir, elsewhere] = [join(temporaryDirectory(t), 'data'), join(temporaryDirectory(t), 'kept.log')];
  const flags = ['--anchor', `file:${elsewhere}`];
  const first = await startTestService(t, flags, dataDir);
  await first.admin.post('/api/v1/credentials', { path: 'a', value: 'v' });
  await first.stop();
  const old = join(temporaryDirectory(t), 'old');
  cpSync(dataDir, old, { recursive: true });
  const second = await startTestService(t, flags, dataDir);
  await second.admin.post('/api/v1/credentials', { path: 'b', value: 'v' });
  await second.stop();
  const newest = linesOf(elsewhere).at(-1);
  assert.equal(newest.note, linesOf(join(dataDir, 'anchors.log')).at(-1).note);
  // Without the other file nothing shows the roll-back: all anchors of the directory were rolled back with it.
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

test('checkpoints reach a webhook, again after it has failed', async (t) => {
  const received: { type: string; data: { size: number; note: string } }[] = [];
  let calls = 0;
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    calls += 1;
    response.statusCode = calls === 1 ? 503 : 204;
    if (calls > 1) received.push(JSON.parse(body));
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const service = await startTestService(t, ['--anchor', `webhook+http://127.0.0.1:${address.port}/`]);
  await until(() => received.length > 0, 'no checkpoint was received');
  assert.deepEqual(
    [received[0]?.type, received[0]?.data.note],
    ['audit.checkpoint', (await service.admin.get('/api/v1/audit/checkpoint')).body.data.note],
  );
});
