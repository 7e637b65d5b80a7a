// A receiver whose response has a header named like a member of objects causes no failure: the same process serves, and
// the stream continues. An identity provider whose response is too long, or whose metadata is unusable, fails its
// sign-in.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { directFetch } from '../../src/client/node-fetch.ts';
import { ProviderClient } from '../../src/server/oidc-client.ts';
import { temporaryDirectory } from '../kit/directory.ts';
import { startHostilePeer } from '../kit/hostile-peer.ts';
import { serve } from '../kit/key-services.ts';
import { startHttpReceiver, until, webhookStream } from '../kit/log-receivers.ts';
import { seriesValue } from '../kit/prometheus-text.ts';
import { scrape } from '../kit/scrape.ts';
import { startTestService } from '../kit/service.ts';
import { openBrowser } from '../kit/sign-in.ts';

test('a receiver that answers with __proto__ as header and trailer receives the whole log', async (t) => {
  const odd = ['__proto__: x', '__proto__: y', 'constructor: z', 'Retry-After: __proto__'].join('\r\n');
  const answer = `HTTP/1.1 200 OK\r\n${odd}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n__proto__: x\r\n\r\n`;
  let pages = 0;
  const { port } = await startHostilePeer(t, () => {
    pages += 1;
    return { pieces: [Buffer.from(answer)], end: 'stay' };
  });
  const { admin } = await startTestService(t, webhookStream(t, `http://127.0.0.1:${port}/`));
  await until(() => pages > 0);
  const before = pages;
  assert.equal((await admin.post('/api/v1/credentials', { path: 'a/b', value: 'v' })).status, 201);
  await until(() => pages > before);
  assert.equal((await admin.get('/api/v1/health')).status, 200);
});

test('a receiver that switches protocols without a request for it fails its stream, and the server stops', async (t) => {
  const switching = 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: other\r\n\r\n';
  const { port } = await startHostilePeer(t, () => ({ pieces: [Buffer.from(switching)], end: 'stay' }));
  const service = await startTestService(t, webhookStream(t, `http://127.0.0.1:${port}/`));
  const failures = async (): Promise<number> =>
    seriesValue(await scrape(service.address), 'leasehold_stream_failures_total', { stream: 'webhook' });
  await until(async () => (await failures()) >= 2);
  await service.stop();
});

test('interim responses without end fail the request, and nothing waits for its time-out', async (t) => {
  for (const interim of ['HTTP/1.1 100 Continue\r\n\r\n', 'HTTP/1.1 102 Processing\r\n\r\n']) {
    const whole = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
    const start = async (times: number): Promise<string> => {
      const pieces = [Buffer.from(interim.repeat(times) + whole)];
      return `http://127.0.0.1:${(await startHostilePeer(t, () => ({ pieces, end: 'stay' }))).port}/`;
    };
    const send = directFetch();
    assert.equal((await send(await start(100))).status, 200);
    await assert.rejects(send(await start(101)), { code: 'INVALID_RESPONSE' });
  }
});

test('empty lines without end in place of a response fail the request, and nothing waits for its time-out', async (t) => {
  const pieces = [Buffer.from('\r\n'.repeat(256 * 1024))];
  const { port } = await startHostilePeer(t, () => ({ pieces, end: 'stay' }));
  await assert.rejects(directFetch()(`http://127.0.0.1:${port}/`), TypeError);
});

test('a sign-in at a provider whose metadata is too long or unusable is 503', async (t) => {
  let metadata = '';
  const port = await startHttpReceiver(t, (_call, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(metadata);
  });
  const issuer = `http://127.0.0.1:${port}`;
  const service = await startTestService(t, [`--oidc-issuer=${issuer}`, '--oidc-client-id=leasehold']);
  for (metadata of [
    JSON.stringify({ issuer, filler: 'x'.repeat(1024 * 1024) }),
    JSON.stringify({ issuer, authorization_endpoint: { toString: 1 } }),
    `{"issuer":"${issuer}","__proto__":{"jwks_uri":"x"}}`,
  ]) {
    const { status, text } = await openBrowser(service).post('/api/v1/auth/oidc/options', {});
    assert.equal(status, 503, text);
  }
});

test("a provider's endpoint in plain HTTP on another machine receives no client secret", async (t) => {
  const received: unknown[] = [];
  const elsewhere = await serve(t, ({ url }) => {
    received.push(url);
    return { status: 400, body: {} };
  });
  let metadata = {};
  const issuer = await serve(t, () => ({ status: 200, body: metadata }));
  // 0.0.0.0 leads to this machine, and the rule counts it as another.
  const token_endpoint = `${elsewhere.replace('127.0.0.1', '0.0.0.0')}/token`;
  metadata = { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint, jwks_uri: `${issuer}/keys` };
  const secretFile = join(temporaryDirectory(t), 'secret');
  writeFileSync(secretFile, 'client-secret', { mode: 0o600 });
  const warnings: string[] = [];
  const settings = { issuer, clientId: 'leasehold', secretFile, label: 'test' };
  const client = new ProviderClient(settings, (line) => warnings.push(line));
  const request = {
    redirectUri: 'http://127.0.0.1/console/callback',
    state: 's',
    nonce: 'n',
    verifier: 'v'.repeat(43),
  };
  await assert.rejects(client.redeem(request, 'code'), { code: 'UNAVAILABLE' });
  assert.deepEqual([received, warnings], [[], [`the identity provider ${issuer} cannot be used: PLAIN_HTTP`]]);
});
