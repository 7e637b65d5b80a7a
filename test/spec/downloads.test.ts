// A client of a hub of files downloads through a base URL, as huggingface_hub 2.4 does: HEAD for size, tag and commit,
// a redirect on the hub or to a store of files, then GET; and again with the tag that it kept.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startUpstream } from '../broker/upstream.ts';
import { startTestService } from '../kit/service.ts';
import { exchange, storeWithTargets } from '../kit/use.ts';

const FILE = '{"model_type":"bert"}';
const COMMIT = 'a'.repeat(40);
const STORE = 'https://files.example/sha256/abc?signature=1';

const service = await startTestService({ after });
const upstream = await startUpstream({ after }, ({ method, url = '', headers }, response) => {
  const tag = '"3f1c"';
  const described = { etag: tag, 'x-repo-commit': COMMIT, 'accept-ranges': 'bytes' };
  if (url.includes('/resolve/main/')) response.writeHead(307, { ...described, location: '/cache/config.json' }).end();
  else if (url.includes('/large/')) {
    const linked = { 'x-linked-etag': '"abc"', 'x-linked-size': '9000000000', location: STORE };
    response.writeHead(302, { ...described, ...linked }).end();
  } else if (headers['if-none-match'] === tag) response.writeHead(304, described).end();
  else {
    response.writeHead(200, { ...described, 'content-length': FILE.length });
    response.end(method === 'HEAD' ? undefined : FILE);
  }
});
const agent = await service.agent('agent', { 'hub/*': ['use'] });
await storeWithTargets(service, 'hub/key', upstream);
const own = { authorization: `Bearer ${agent.token}`, 'accept-encoding': 'identity' };
const base = '/use/hub/key/-';

const send = async (path: string, method: string, headers = {}) => {
  const { response, text } = await exchange(service.address, path, { ...own, ...headers }, { method });
  return { status: response.statusCode, headers: response.headers, text: await text() };
};

test('a file is downloaded after HEAD and a redirect on the hub, and is known by its tag afterwards', async () => {
  const redirect = await send(`${base}/org/model/resolve/main/config.json`, 'HEAD');
  const { location = '' } = redirect.headers;
  assert.deepEqual([redirect.status, redirect.headers['x-repo-commit']], [307, COMMIT]);
  assert.equal(location, `${service.address}${base}/cache/config.json`);
  const path = new URL(location).pathname;
  const head = await send(path, 'HEAD');
  const { etag = '', 'content-length': length } = head.headers;
  assert.deepEqual([head.status, length, etag, head.text], [200, String(FILE.length), 'W/"3f1c"', '']);
  assert.equal(head.headers['accept-ranges'], undefined);
  const got = await send(path, 'GET');
  assert.deepEqual([got.status, got.headers.etag, got.text], [200, etag, FILE]);
  const known = await send(path, 'GET', { 'if-none-match': etag });
  assert.deepEqual([known.status, known.headers.etag, known.text], [304, etag, '']);
});

test('the redirect to a store of files keeps its address, size and tag', async () => {
  const { status, headers } = await send(`${base}/org/model/large/weights.bin`, 'HEAD');
  assert.deepEqual([status, headers.location], [302, STORE]);
  assert.deepEqual([headers['x-linked-etag'], headers['x-linked-size']], ['"abc"', '9000000000']);
});
