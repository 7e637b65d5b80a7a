// An error of `http_request` has the service's code, says what would help, and contains no value.

import assert from 'node:assert/strict';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileSigner, Leasehold } from '../../src/client/leasehold.ts';
import { openMcp } from '../../src/mcp/server.ts';
import { standBetween } from '../client/fault-proxy.ts';
import { connect, LEAST, shows } from './fixture.ts';
import { KEY, KEY_PATH, startUseStage } from './use-stage.ts';

const TOOL = 'http_request';

const begin = (t: TestContext) => startUseStage(t, (_, response) => void response.end('ok'));

for (const [part, method, path] of [
  ['path', 'GET', '/v2/models'],
  ['method', 'DELETE', '/v1/models'],
] as const) {
  test(`a request whose ${part} no target has is denied, which the error says`, async (t) => {
    const { refusal, origin, requests, transcript } = await begin(t);
    const said = await refusal(TOOL, { path: KEY_PATH, method, url: `${origin}${path}` });
    assert.match(said, new RegExp(`^ACCESS_DENIED: .*no target of the credential has this ${part}\\b`));
    assert.match(said, /The policies allow this agent to use api\/key, but its targets do not allow this request/);
    assert.match(said, /leasehold policy explain builder use api\/key/);
    assert.equal(requests.length, 0);
    assert.equal(shows(transcript(), KEY), false);
  });
}

test('a request to another host is denied, and without the action list the error names no host', async (t) => {
  const grants = { 'api/*': ['use'] };
  const { refusal } = await startUseStage(t, (_, response) => void response.end(), { grants });
  const said = await refusal(TOOL, { path: KEY_PATH, url: 'https://attacker.example/v1/models' });
  assert.match(said, /^ACCESS_DENIED: .*no target of the credential has this host\./);
  assert.doesNotMatch(said, /127\.0\.0\.1|attacker/);
});

test('without a grant the error has the reason and the command for the operator', async (t) => {
  const { refusal, service, store, origin } = await begin(t);
  await store('prod/key');
  const said = await refusal(TOOL, { path: 'prod/key', url: `${origin}/v1/a` });
  assert.match(said, /^ACCESS_DENIED: .*The policies do not allow this agent to use prod\/key: "No policy grants/);
  assert.match(said, /leasehold policy explain builder use prod\/key shows what would grant it\.$/);
  await service.admin.post('/api/v1/credentials', { path: 'api/plain', value: 'no targets' });
  assert.match(await refusal(TOOL, { path: 'api/plain', url: `${origin}/v1/a` }), /has no targets/);
  const missing = await refusal(TOOL, { path: 'api/missing', url: `${origin}/v1/a` });
  assert.match(missing, /^NOT_FOUND: .* list_credentials shows the paths that this agent may list\.$/);
});

test('an upstream that cannot be used is UPSTREAM_FAILED, with what would help for each class', async (t) => {
  const { refusal, store, origin, transcript } = await begin(t);
  const nowhere = 'https://127.0.0.1:1';
  await store('api/closed', { origin: nowhere });
  await store('api/internal', { allow_networks: [] });
  await store('api/untrusted', { ca_pem: null });
  await store('api/unknown', { origin: 'https://unknown.invalid' });
  for (const [path, url, says] of [
    ['api/closed', `${nowhere}/v1/a`, /: connect\. The host accepted no connection; nothing was sent\.$/],
    ['api/internal', `${origin}/v1/a`, /: refused_address\. The host has an internal address, /],
    ['api/untrusted', `${origin}/v1/a`, /: tls\. The host’s certificate is not trusted; nothing was sent\. /],
    ['api/unknown', 'https://unknown.invalid/v1/a', /: dns\. The host of the URL has no address/],
  ] as const) {
    const said = await refusal(TOOL, { path, url });
    assert.match(said, /^UPSTREAM_FAILED: /);
    assert.match(said, says);
  }
  assert.equal(shows(transcript(), KEY), false);
});

test('an invalid request is rejected with field and rule, and repeats nothing of it', async (t) => {
  const { refusal, origin } = await begin(t);
  const at = (url: string) => refusal(TOOL, { path: KEY_PATH, url });
  assert.match(await at('v1/models'), /^INVALID_REQUEST: url: must be an absolute URL/);
  const withUser = await at(`https://user:hunter2@127.0.0.1/v1/a`);
  assert.match(withUser, /^INVALID_REQUEST: /);
  assert.doesNotMatch(withUser, /hunter2/);
  assert.match(await refusal(TOOL, { path: '../x', url: `${origin}/v1/a` }), /^INVALID_REQUEST: path: /);
  const trace = { path: KEY_PATH, url: `${origin}/v1/a`, method: 'TRACE' };
  assert.match(await refusal(TOOL, trace), /^INVALID_REQUEST: method: /);
});

test('a request whose response is lost is not repeated, and the error says that its outcome is unknown', async (t) => {
  const { service, origin, requests } = await begin(t);
  const between = await standBetween(t, service);
  const sign = fileSigner(join(service.dataDir, 'agents/builder/private_key.pem'));
  const client = new Leasehold({ address: between.address, agent: { name: 'builder', sign } });
  const mcp = await openMcp({ ...LEAST, client });
  t.after(() => mcp.close());
  const { use, refusal } = await connect(t, mcp, 'http');
  between.next('cut after', ({ path }) => path === '/api/v1/use');
  const request = { path: KEY_PATH, method: 'POST', url: `${origin}/v1/a` };
  const said = await refusal(TOOL, request);
  assert.match(said, /^UNAVAILABLE: .*The request may have reached the upstream: .*check whether it took effect\.$/);
  assert.equal(requests.length, 1);
  // A session that has ended is replaced before the request is made.
  await client.logOut();
  assert.equal((await use(TOOL, request))['status'], 200);
  assert.equal(requests.length, 2);
});
