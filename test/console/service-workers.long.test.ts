// The console has no service worker, so that a service worker of its origin belongs to another program, and is removed.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { startBrowser } from '../kit/browser.ts';
import { startTestService } from '../kit/service.ts';

const browser = await startBrowser({ after });

test('the console removes the service worker of a program that had its origin before', async (t) => {
  const squatter = http.createServer(({ url }, response) => {
    const isWorker = url === '/sw.js';
    const worker = "self.addEventListener('fetch', (event) => event.respondWith(fetch(event.request)));";
    const type = isWorker ? 'text/javascript' : 'text/html';
    response
      .writeHead(200, { 'content-type': type })
      .end(isWorker ? worker : '<!doctype html><link rel="icon" href="data:,">');
  });
  squatter.listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  const { port } = squatter.address() as AddressInfo;
  const address = `http://127.0.0.1:${port}`;
  const { page } = await browser.open(t, `${address}/`);
  const registered = 'navigator.serviceWorker.getRegistrations().then((all) => all.length)';
  await page.evaluate(
    "navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready).then(() => 1)",
  );
  assert.equal(await page.evaluate(registered), 1);
  squatter.closeAllConnections();
  squatter.close();
  await once(squatter, 'close');

  await startTestService(t, ['--listen', `127.0.0.1:${port}`]);
  await page.goto(`${address}/console/`);
  await page.getByRole('heading', { name: 'Sign in to Leasehold' }).waitFor();
  assert.equal(await page.evaluate(registered), 0);
  assert.equal(await page.evaluate('navigator.serviceWorker.controller'), null);
});
