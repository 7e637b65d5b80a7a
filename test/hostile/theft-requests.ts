// An agent that may use a credential cannot get its value by the request that it describes: not to another place, not
// with other headers, not in another form.

import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { attempt, type TheftFixture, tokenOf, VALUE } from './theft-fixture.ts';

const bearer = { kind: 'bearer' };

const asUrls = (urls: readonly string[]) => urls.map((url) => ({ url }));

/** The headers that the upstream gets, names and values, when the agent sends these. */
async function receivedOf(
  { setResponse, upstream, use }: TheftFixture,
  headers: Record<string, string>,
  fields = {},
): Promise<readonly string[]> {
  setResponse((response) => response.end());
  assert.equal((await use({ headers, ...fields })).status, 200);
  return upstream.requests.at(-1)?.rawHeaders ?? [];
}

attempt('a mark for the value in the address, a header or the body, which is replaced nowhere', async (fixture) => {
  const { setResponse, upstream, use } = fixture;
  setResponse((response, request) => request.pipe(response));
  const marks = '{value} $VALUE {{value}} [secret] %VALUE%';
  const answer = await use({ method: 'POST', headers: { 'x-mark': marks }, body: marks });
  assert.equal(answer.body.data.body, marks);
  assert.equal(upstream.requests.at(-1)?.headers['x-mark'], marks);
});
attempt('the thief’s server in the address, also as a redirect’s destination', async ({ assertRefused, ownServer }) => {
  const own = `127.0.0.1:${ownServer.port}`;
  await assertRefused(
    asUrls([`http://${own}/v1/echo`, `https://${own}/v1/echo`, `http://localhost:${ownServer.port}/`]),
  );
});
attempt('other spellings of the host', async ({ assertRefused, upstream: { port } }) => {
  const spellings = [
    ...['127.1', '127.0.1', '2130706433', '0x7f000001', '0177.0.0.1', '127.0.0.1.', '127.0.0.01', '①②⑦.0.0.1'],
    ...[
      '[::1]',
      '[::ffff:127.0.0.1]',
      '[::127.0.0.1]',
      '[64:ff9b::127.0.0.1]',
      '0',
      '0.0.0.0',
      'LOCALHOST',
      'localhost.',
    ],
    ...['127.0.0.1%00.example.com', '127.0.0.1.nip.io', 'localhost', hostname(), '[::1%25lo]', '127。0。0。1'],
  ];
  await assertRefused(asUrls(spellings.map((host) => `https://${host}:${port}/v1/echo`)));
});
attempt('a name that resolves to this machine, for which no network is allowed', async (fixture) => {
  const { admin, assertRefused, upstream } = fixture;
  const { port } = upstream;
  const path = 'theft/inside';
  await admin.post('/api/v1/credentials', { path, value: VALUE });
  for (const host of ['localhost', '127.0.0.1', '[::1]', '[::ffff:7f00:1]', '0.0.0.0', '[::]']) {
    const targetOrigin = `https://${host}:${port}`;
    const inside = [{ origin: targetOrigin, ca_pem: upstream.caPem }];
    assert.equal((await admin.put(`/api/v1/targets/${path}`, { targets: inside, placement: bearer })).status, 200);
    await assertRefused([{ path, url: `${targetOrigin}/v1/echo`, targetOrigin }]);
  }
});
attempt('other ports, and other spellings of the port', async ({ assertRefused, upstream: { port } }) => {
  const ports = ['', ':443', `:${port + 1}`, `:0${port}`, `:${port}0`, `:${port + 65_536}`, ':', `:${port}:443`, ':-1'];
  await assertRefused(asUrls(ports.map((each) => `https://127.0.0.1${each}/v1/echo`)));
});
attempt('other paths, by dots, slashes and encodings', async ({ assertRefused, door, origin: ownOrigin }) => {
  const paths = ['', '/', '/v1', '/V1/echo', '/v1/../admin', '/v1/%2e%2e/admin', '/v1/..%2fadmin', '/v1/%252e%252e/a'];
  const more = ['//v1/echo', '/v1//echo', '/v1/..;/admin', '/v1\\..\\admin', '/v1/%5c..%5cadmin', '/v1/./a', '/./v1/a'];
  await assertRefused(asUrls([...paths, ...more].map((path) => `${ownOrigin}${path}`)));
  // A path alone leads to the only target.
  if (door === 'one call') await assertRefused(asUrls([...paths, ...more]));
});
attempt('a user in the address, and marks after which parsers differ', async (fixture) => {
  const { assertRefused, door, origin: ownOrigin, ownServer } = fixture;
  // Spaces before the version of HTTP belong to no address.
  const padded = door === 'one call' ? [`${ownOrigin}/v1/echo `] : [];
  const ECHO = `${ownOrigin}/v1/echo`;
  const [, authority = ''] = ownOrigin.split('//');
  const own = `127.0.0.1:${ownServer.port}`;
  await assertRefused(
    asUrls([
      ...[
        `https://${authority}@${own}/v1/echo`,
        `https://user:pass@${authority}/v1/echo`,
        `https://${own}@${authority}/v1/`,
      ],
      ...[
        `https://${authority}\\@${own}/v1/echo`,
        `https://${authority}#@${own}/v1/`,
        `https://${authority}?@${own}/v1/`,
      ],
      ...[
        `https:${authority}/v1/echo`,
        `https:///${authority}/v1/`,
        `//${authority}/v1/echo`,
        `HTTPS://${authority}/v1/`,
      ],
      ...[` ${ECHO}`, ...padded, `${ECHO}\r\nX: y`, `${ECHO}\0`, `${ECHO}#a`, `file://${authority}/v1/a`, '*'],
    ]),
  );
});
attempt('an absolute address within the path', async ({ assertRefused, origin: ownOrigin, ownServer }) => {
  const own = `http://127.0.0.1:${ownServer.port}`;
  await assertRefused(asUrls([`${ownOrigin}/${own}/v1/echo`, `${ownOrigin}/v1/${own}/`, `${ownOrigin}${own}`]));
});
attempt('methods that repeat the request, make a tunnel, or carry more than a method', async (fixture) => {
  const { admin, assertRefused, origin: ownOrigin, upstream } = fixture;
  const methods = ['TRACE', 'TRACK', 'CONNECT', 'get', 'GET /v1/other HTTP/1.1', 'GET\r\nX: y', 'PRI', 'OPTIONS', ''];
  await assertRefused(methods.map((method) => ({ method })));
  for (const method of ['TRACE', 'TRACK', 'CONNECT', 'get']) {
    const tracing = [{ origin: ownOrigin, methods: [method], ca_pem: upstream.caPem }];
    const answer = await admin.put('/api/v1/targets/theft/bearer', { targets: tracing, placement: bearer });
    assert.equal(answer.status, 400, answer.text);
  }
});
attempt('headers that name another method, address or host', async (fixture) => {
  const names = ['X-HTTP-Method-Override', 'X-Method-Override', 'X-Original-URL', 'X-Rewrite-URL', 'X_Original_URL'];
  const hosts = ['X-Forwarded-Host', 'Forwarded', 'X-Host', 'x_forwarded_host', 'Via', 'X-Forwarded-For'];
  // At the base URL it is the service's own, which rejects it.
  if (fixture.door === 'one call') hosts.push('Host');
  else await fixture.assertRefused([{ headers: { Host: 'evil.example' } }]);
  const received = await receivedOf(
    fixture,
    Object.fromEntries([...names, ...hosts].map((name) => [name, 'evil.example'])),
  );
  assert.equal(received.includes('evil.example'), false);
});
attempt('line breaks and other characters in headers', async ({ assertRefused, door }) => {
  const values = ['a\r\nX-Own: 1', 'a\nX: 1', 'a\r\n\r\nGET /v1/own HTTP/1.1', 'a\0', 'a\x7f', '\u010a'];
  const names = ['X\r\nY', 'X: 1\r\nY', 'X Y', '', ':path', ':authority', ':method', 'X\0', 'X:'];
  // In the bytes of a request to the base URL, a line break or a colon only begins another header or its value.
  const isBroken = (text: string): boolean => door === 'one call' || !/[\n\u010a]|^X:/.test(text);
  await assertRefused([
    ...values.filter(isBroken).map((value) => ({ headers: { 'x-a': value } })),
    ...names.filter(isBroken).map((name) => ({ headers: { [name]: '1' } })),
  ]);
});
attempt('a second authority, in every header and spelling that a server might prefer', async (fixture) => {
  const names = ['Authorization', 'authorization', 'AUTHORIZATION', 'Proxy-Authorization', 'X-Api-Key', 'x_api_key'];
  const more = [
    'Cookie',
    'cookie',
    'Api-Key',
    'Private-Token',
    'X-Auth-Token',
    'Proxy-Connection',
    'proxy_authorization',
  ];
  // The headers that may have the token of the base URL: a second one is rejected.
  const isToken = (name: string): boolean => /^(?:authorization|x-api-key|api-key)$/i.test(name);
  const all = [...names, ...more].filter((name) => fixture.door === 'one call' || !isToken(name));
  for (const name of [...names, ...more].filter((each) => !all.includes(each)))
    await fixture.assertRefused([{ headers: { [name]: 'Bearer of-the-thief' } }]);
  const received = await receivedOf(fixture, Object.fromEntries(all.map((name) => [name, 'Bearer of-the-thief'])));
  assert.equal(received.includes('Bearer of-the-thief'), false);
  assert.deepEqual(
    received.filter((_, at) => /^authorization$/i.test(received[at - 1] ?? '')),
    [`Bearer ${VALUE}`],
  );
});
attempt('Connection naming the credential’s header, so that a proxy removes or logs it', async (fixture) => {
  const received = await receivedOf(fixture, {
    Connection: 'authorization, x-a, close',
    'X-A': '1',
    'Keep-Alive': 'max=1',
  });
  assert.equal(received.includes('x-a'), false);
  assert.ok(received.includes(`Bearer ${VALUE}`));
  assert.equal(received.join().toLowerCase().includes('connection,authorization'), false);
});
attempt(
  'framing that leaves the credential to the next request',
  async (fixture) => {
    const { upstream } = fixture;
    const headers = {
      'Content-Length': '0',
      'Transfer-Encoding': 'chunked',
      TE: 'trailers',
      Trailer: 'x',
      Expect: '100-continue',
    };
    const body = `0\r\n\r\nPOST /v1/own HTTP/1.1\r\nHost: a\r\nContent-Length: 999\r\n\r\n`;
    const before = upstream.requests.length;
    const received = await receivedOf(fixture, headers, { method: 'POST', body });
    assert.equal(upstream.requests.length, before + 1);
    assert.equal(received[received.indexOf('Content-Length') + 1], String(body.length));
  },
  ['one call'],
);
attempt(
  'an upgrade, after which messages have another form',
  async ({ setResponse, upstream, use }) => {
    setResponse((response) => response.end('ok'));
    upstream.server.on('upgrade', (request, socket) => {
      socket.on('error', () => undefined);
      socket.end(`HTTP/1.1 101 a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n${tokenOf(request)}`);
    });
    const headers = {
      Connection: 'Upgrade',
      Upgrade: 'websocket',
      'Sec-WebSocket-Key': 'a',
      'Sec-WebSocket-Version': '13',
    };
    const answer = await use({ headers });
    upstream.server.removeAllListeners('upgrade');
    assert.equal(answer.body.data.body, 'ok');
  },
  ['one call'],
);
