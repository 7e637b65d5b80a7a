// A log stream on several nodes: one sends it, and another continues when that one is killed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startCluster } from '../kit/cluster.ts';
import { assertComplete, type LogEntry, startHttpReceiver, until, webhookStream } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';

const STREAM = { stream: 'webhook' };

test('one node sends a stream, and after its death another continues without a gap', async (t) => {
  const seqs: number[] = [];
  const port = await startHttpReceiver(t, ({ body }, response) => {
    seqs.push(...JSON.parse(body).data.entries.map(({ seq }: LogEntry) => seq));
    response.end('{}');
  });
  const flags = webhookStream(t, `http://127.0.0.1:${port}/`);
  const cluster = await startCluster(t, { nodes: 0 });
  const nodes = [await cluster.start(undefined, flags), await cluster.start(undefined, flags)];
  const senders = async (): Promise<number[]> => {
    const pages = await Promise.all(nodes.map(({ address }) => scrape(address)));
    return pages.flatMap((page, index) => (seriesValue(page, 'leasehold_stream_sending', STREAM) === 1 ? [index] : []));
  };
  await until(async () => (await senders()).length > 0);
  const [first, ...others] = await senders();
  assert.deepEqual(others, []);
  const sender = nodes[first ?? 0] ?? assert.fail();
  const other = nodes[1 - (first ?? 0)] ?? assert.fail();
  await sender.admin.post('/api/v1/credentials', { path: 'a/b', value: 'a value' });
  for (let number = 0; number < 30; number++) await nodes[number % 2]?.admin.get('/api/v1/credentials/a/b');
  await sender.end('SIGKILL');
  for (let number = 0; number < 30; number++) await other.admin.get('/api/v1/credentials/a/b');
  const { total } = (await other.admin.get('/api/v1/audit?limit=1')).body.meta;
  await until(() => seqs.at(-1) === total);
  assertComplete(seqs, total);
  assert.equal(seriesValue(await scrape(other.address), 'leasehold_stream_sending', STREAM), 1);
});
