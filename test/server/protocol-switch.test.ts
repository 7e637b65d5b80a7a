// A receiver that switches protocols without a request for it fails its stream, and blocks nothing else.

import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { type TestContext, test } from 'node:test';
import { until, webhookStream } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';

const SWITCHING = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';

async function startSwitching(t: TestContext): Promise<{ port: number; calls: () => number }> {
  let calls = 0;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => {
      calls += 1;
      socket.write(SWITCHING);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === 'object' && address !== null);
  return { port: address.port, calls: () => calls };
}

test('a stream whose receiver switches protocols fails and retries, and the service stops', async (t) => {
  const { port } = await startSwitching(t);
  const service = await startTestService(t, webhookStream(t, `http://127.0.0.1:${port}/`));
  const failures = async (): Promise<number> =>
    seriesValue(await scrape(service.address), 'leasehold_stream_failures_total', { stream: 'webhook' });
  await until(async () => (await failures()) >= 2);
  await service.stop();
});
